# SPDX-License-Identifier: Apache-2.0
"""tf.train.Example and its parts, with only SerializeToString, which is enough to write files of records."""

import numpy as np


def _varint(value):
    value &= 2**64 - 1
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _field(number, encoded):
    """Encodes a length-delimited field of a protocol buffer."""
    return _varint(number << 3 | 2) + _varint(len(encoded)) + encoded


class _Message:
    def SerializeToString(self):  # noqa: N802 (as TensorFlow's)
        """Returns the bytes of the protocol buffer."""
        return self._encoded


class BytesList(_Message):
    """Byte strings."""

    def __init__(self, value=()):
        self.value = [one.encode() if isinstance(one, str) else bytes(one) for one in value]

    _encoded = property(lambda self: b"".join(_field(1, one) for one in self.value))


class FloatList(_Message):
    """32-bit floating-point numbers."""

    def __init__(self, value=()):
        self.value = np.asarray(list(value), "<f4")

    _encoded = property(lambda self: _field(1, self.value.tobytes()) if len(self.value) else b"")


class Int64List(_Message):
    """Integers."""

    def __init__(self, value=()):
        self.value = [int(one) for one in value]

    _encoded = property(lambda self: _field(1, b"".join(map(_varint, self.value))) if self.value else b"")


class Feature(_Message):
    """One of the three lists."""

    def __init__(self, bytes_list=None, float_list=None, int64_list=None):
        lists = {1: bytes_list, 2: float_list, 3: int64_list}
        given = [(number, one) for number, one in lists.items() if one is not None]
        if len(given) > 1:
            raise ValueError("a Feature takes only one of bytes_list, float_list and int64_list")
        self._encoded = b"".join(_field(number, one.SerializeToString()) for number, one in given)


class Features(_Message):
    """Features by name."""

    def __init__(self, feature=None):
        self.feature = dict(feature or {})

    _encoded = property(
        lambda self: b"".join(
            _field(1, _field(1, name.encode()) + _field(2, self.feature[name].SerializeToString()))
            for name in sorted(self.feature)
        )
    )


class Example(_Message):
    """The features of one example."""

    def __init__(self, features=None):
        self.features = features or Features()

    _encoded = property(lambda self: _field(1, self.features.SerializeToString()))
