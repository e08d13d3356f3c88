# SPDX-License-Identifier: Apache-2.0
"""tf.io: files, images, and features of tf.train.Example, with TensorFlow's signatures."""

import collections
import glob
import gzip
import os
import struct
import types

import numpy as np

from .. import _core, ops
from ..dtypes import as_dtype
from ..expr import nest_of
from ..spec import TensorSpec
from ._operation import as_tensor, operation

FixedLenFeature = collections.namedtuple("FixedLenFeature", "shape dtype default_value", defaults=(None,))
FixedLenSequenceFeature = collections.namedtuple(
    "FixedLenSequenceFeature", "shape dtype allow_missing default_value", defaults=(False, None)
)


VarLenFeature = collections.namedtuple("VarLenFeature", "dtype")


@operation
def parse_single_example(serialized, features, example_names=None, name=None):
    """Returns a dict of the features of one serialised tf.train.Example. A VarLenFeature is refused. Use its dense
    equivalent, FixedLenSequenceFeature([], dtype, allow_missing=True), instead."""
    specs, defaults = {}, {}
    for key, feature in features.items():
        if isinstance(feature, VarLenFeature):
            raise NotImplementedError(
                f"feature {key!r}: VarLenFeature is sparse, which is not supported; use "
                "FixedLenSequenceFeature([], dtype, allow_missing=True)"
            )
        dtype, shape = as_dtype(feature.dtype), list(feature.shape)
        if isinstance(feature, FixedLenSequenceFeature):
            shape = [None, *shape]
            if feature.allow_missing:
                defaults[key] = as_tensor(np.zeros([0, *feature.shape], _numpy_dtype(dtype)))
        elif feature.default_value is not None:
            given = np.array(feature.default_value, _numpy_dtype(dtype))
            defaults[key] = as_tensor(np.broadcast_to(given, shape), dtype)
        specs[key] = TensorSpec(shape, dtype)
    leaves = {key: spec._leaf for key, spec in specs.items()}
    return nest_of(_core.ops.parse_example(as_tensor(serialized), leaves, defaults), specs)


@operation
def read_file(filename, name=None):
    """Returns the contents of a file, which is read where the function runs."""
    return ops.read_file(as_tensor(filename))


@operation
def decode_jpeg(contents, channels=0, ratio=1, fancy_upscaling=True, try_recover_truncated=False, name=None):
    """Returns uint8 [height, width, channels]. channels 0 means 3, because the shape of a dataset's elements cannot depend
    on a file."""
    if ratio != 1:
        raise NotImplementedError("decode_jpeg: ratio must be 1; a resize after it may decode less (docs/images.md)")
    return ops.decode_jpeg(as_tensor(contents), channels or 3)


@operation
def decode_png(contents, channels=0, dtype="uint8", name=None):
    """Returns [height, width, channels]. channels 0 means 3."""
    return ops.decode_png(as_tensor(contents), channels or 3, dtype=as_dtype(dtype))


@operation
def decode_image(contents, channels=None, dtype="uint8", name=None, expand_animations=True):
    """Decodes a JPEG or PNG, which the first bytes distinguish. channels 0 or None means 3."""
    from . import image

    return image.convert_image_dtype(ops.decode_image(as_tensor(contents), channels or 3), dtype)


@operation
def decode_raw(input_bytes, out_type, little_endian=True, fixed_length=None, name=None):
    """Returns the bytes of a string as numbers."""
    if not little_endian or fixed_length is not None:
        raise NotImplementedError("decode_raw: little_endian must be True, and fixed_length None")
    return ops.decode_raw(as_tensor(input_bytes), as_dtype(out_type))


class TFRecordWriter:
    """Writes a file of records. options: "" or "GZIP"."""

    def __init__(self, path, options=None):
        if options not in (None, "", "GZIP"):
            raise ValueError(f"TFRecordWriter: unknown options {options!r}; known options: '' and 'GZIP'")
        self._file = (gzip.open if options == "GZIP" else open)(os.fspath(path), "wb")

    def write(self, record):
        """Writes one record."""
        record = record.encode() if isinstance(record, str) else bytes(record)
        length = struct.pack("<Q", len(record))
        for part in (length, record):
            self._file.write(part + struct.pack("<I", _core.masked_crc32c(part)))

    def flush(self):
        """Writes buffered records to the file."""
        self._file.flush()

    def close(self):
        """Closes the file."""
        self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


gfile = types.SimpleNamespace(
    exists=os.path.exists,
    glob=lambda pattern: sorted(glob.glob(os.fspath(pattern))),
    isdir=os.path.isdir,
    listdir=os.listdir,
    makedirs=lambda path: os.makedirs(path, exist_ok=True),
)


def _numpy_dtype(dtype):
    return object if dtype == "string" else dtype.name
