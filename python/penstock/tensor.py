# SPDX-License-Identifier: Apache-2.0
"""Tensors of elements: NumPy arrays on the element's own memory, without a copy.

A tensor keeps its element, and so the element's slot, which is returned when the last tensor is destroyed. The buffer
protocol (`memoryview(tensor)`), `__array__` and DLPack (`torch.from_dlpack(tensor)`) read the same memory.
"""

import math

import numpy as np

from . import _core

Tensor = _core.Tensor


def array(tensor):
    """Returns the values as a NumPy array of the tensor's shape, on the tensor's memory. The array is read-only if other
    readers share the element. Strings become an array of bytes objects, which is a copy."""
    values = tensor._array()
    if values is None:
        values = np.empty(tensor.shape, dtype=object)
        values.ravel()[:] = tensor._strings()
    return values


def numpy(tensor):
    """Same as `array`, but a tensor without dimensions becomes a NumPy scalar, or bytes for a string."""
    return array(tensor)[()]


def _array(tensor, dtype=None, copy=None):
    values = array(tensor)
    if dtype is not None and values.dtype != dtype:
        return values.astype(dtype)
    return values.copy() if copy else values


def _repr(tensor):
    if tensor.device != "CPU:0":
        return f"<penstock.Tensor: shape={tensor.shape}, dtype={tensor.dtype}, device={tensor.device}>"
    return f"<penstock.Tensor: shape={tensor.shape}, dtype={tensor.dtype}, numpy={numpy(tensor)!r}>"


class Array(np.ndarray):
    """The result of tensor operators: NumPy's array, with TensorFlow's `numpy()`."""

    def numpy(self):
        """Returns a plain array or scalar."""
        return np.asarray(self)[()]


def with_numpy(value):
    """Returns an array or a Python value as an Array."""
    return np.asarray(value, dtype=object if isinstance(value, bytes) else None).view(Array)


def _result(values):
    if values is NotImplemented or isinstance(values, bytes):
        return values
    return np.asarray(values).view(Array)


def _other(value, dtype):
    if isinstance(value, Tensor):
        return array(value)
    return value.encode() if isinstance(value, str) and dtype.name == "string" else value


def _binary(name):
    def apply(self, other):
        if isinstance(other, _core.Expr):
            return NotImplemented  # the other operand records the operation
        return _result(getattr(array(self), name)(_other(other, self.dtype)))

    apply.__name__ = name
    return apply


def _unary(name, wrap):
    def apply(self, *arguments):
        return wrap(getattr(array(self), name)(*arguments))

    apply.__name__ = name
    return apply


def _dress():
    Tensor.numpy = numpy
    Tensor.__array__ = _array
    Tensor.__repr__ = _repr
    Tensor.__format__ = lambda self, how: format(numpy(self), how) if how else repr(self)
    Tensor.ndim = property(lambda self: len(self.shape))
    Tensor.size = property(lambda self: math.prod(self.shape))
    for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
        setattr(Tensor, f"__{name}__", _binary(f"__{name}__"))
        setattr(Tensor, f"__r{name}__", _binary(f"__r{name}__"))
    for name in "eq ne lt le gt ge".split():
        setattr(Tensor, f"__{name}__", _binary(f"__{name}__"))
    for name in "neg pos abs invert getitem".split():
        setattr(Tensor, f"__{name}__", _unary(f"__{name}__", _result))
    for name in "bool int float complex index len iter".split():
        setattr(Tensor, f"__{name}__", _unary(f"__{name}__", lambda value: value))
    Tensor.__hash__ = None


_dress()


class RaggedTensor:
    """Rows of different lengths: `flat_values`, and `nested_row_splits` from the outermost level inwards."""

    def __init__(self, flat_values, nested_row_splits):
        self.flat_values = flat_values
        self.nested_row_splits = tuple(nested_row_splits)

    def to_list(self):
        """Returns the rows as nested lists."""
        rows = array(self.flat_values).tolist()
        for splits in reversed(self.nested_row_splits):
            ends = array(splits).tolist()
            rows = [rows[begin:end] for begin, end in zip(ends, ends[1:])]
        return rows

    def numpy(self):
        """Returns an array with one entry per row: an array of the row's length, or a list if there are more levels."""
        if len(self.nested_row_splits) == 1:
            ends, values = array(self.nested_row_splits[0]), array(self.flat_values)
            rows = [values[begin:end] for begin, end in zip(ends, ends[1:])]
        else:
            rows = self.to_list()
        result = np.empty(len(rows), dtype=object)
        for i, row in enumerate(rows):
            result[i] = row
        return result

    @property
    def dtype(self):
        """The DType of the values."""
        return self.flat_values.dtype

    def __len__(self):
        return len(array(self.nested_row_splits[0])) - 1

    def __repr__(self):
        return f"<penstock.RaggedTensor {self.to_list()}>"


class SparseTensor:
    """`values` at `indices` (int64 [n, rank]) of a tensor of `dense_shape`."""

    def __init__(self, indices, values, dense_shape):
        self.indices = indices
        self.values = values
        self.dense_shape = dense_shape

    @property
    def dtype(self):
        """The DType of the values."""
        return self.values.dtype

    def numpy(self):
        """Returns the dense array."""
        values = array(self.values)
        dense = np.zeros(tuple(array(self.dense_shape)), dtype=values.dtype)
        dense[tuple(array(self.indices).T)] = values
        return dense

    def __repr__(self):
        return f"<penstock.SparseTensor shape={tuple(array(self.dense_shape))}, values={numpy(self.values)}>"
