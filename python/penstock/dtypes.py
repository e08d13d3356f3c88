# SPDX-License-Identifier: Apache-2.0
"""The types of tensors' values, as in tf.dtypes."""

import numpy as np


class DType:
    """The type of a tensor's values. It is equal to its name and to the corresponding NumPy dtype.

    Use the constants of this module (`penstock.float32`), or `as_dtype`.
    """

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    @property
    def as_numpy_dtype(self):
        """NumPy's scalar type, or `object` for strings. bfloat16 needs the package ml_dtypes."""
        if self.name == "string":
            return np.object_
        if self.name == "bfloat16":
            return _bfloat16()
        return np.dtype(self.name).type

    @property
    def is_integer(self):
        """True for signed and unsigned integers, but not for bool."""
        return self.name.startswith(("int", "uint"))

    @property
    def is_floating(self):
        """True for floating-point numbers of any width, but not for complex numbers."""
        return "float" in self.name

    @property
    def is_bool(self):
        """True only for bool."""
        return self.name == "bool"

    def __eq__(self, other):
        try:
            return self.name == as_dtype(other).name
        except TypeError:
            return NotImplemented

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"penstock.{self.name}"

    def __str__(self):
        return self.name

    def __reduce__(self):
        return as_dtype, (self.name,)


def _bfloat16():
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError("NumPy has no bfloat16: install ml_dtypes, or cast to float32 in a map") from None
    return ml_dtypes.bfloat16


NAMES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128 "
    "string"
).split()
_BY_NAME = {name: DType(name) for name in NAMES}
bool = _BY_NAME["bool"]
int8 = _BY_NAME["int8"]
int16 = _BY_NAME["int16"]
int32 = _BY_NAME["int32"]
int64 = _BY_NAME["int64"]
uint8 = _BY_NAME["uint8"]
uint16 = _BY_NAME["uint16"]
uint32 = _BY_NAME["uint32"]
uint64 = _BY_NAME["uint64"]
float16 = _BY_NAME["float16"]
bfloat16 = _BY_NAME["bfloat16"]
float32 = _BY_NAME["float32"]
float64 = _BY_NAME["float64"]
complex64 = _BY_NAME["complex64"]
complex128 = _BY_NAME["complex128"]
string = _BY_NAME["string"]
_STRINGS = (str, bytes, np.str_, np.bytes_, np.object_)


def as_dtype(value):
    """Returns the DType for a name, a NumPy dtype or scalar type, a Python type, or a DType. Raises TypeError for other
    values."""
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    if value in _STRINGS:
        return _BY_NAME["string"]
    try:
        dtype = np.dtype(value)
    except TypeError:
        dtype = None
    if dtype is not None and value is not None:
        if dtype.kind in "OSU":
            return _BY_NAME["string"]
        if dtype.name in _BY_NAME:
            return _BY_NAME[dtype.name]
    raise TypeError(f"unknown dtype {value!r}; known dtypes: {', '.join(NAMES)}")
