# SPDX-License-Identifier: Apache-2.0
"""Converts Python values for the engine."""

import numpy as np

from . import tensor
from .dtypes import as_dtype


def given(value):
    """Returns (dtype, shape, data) of `value` as a NumPy array. `data` is a contiguous buffer, or for strings a list of
    bytes objects, as _core expects. As in tf.data, Python floats are float32, and integers are int32 if they fit."""
    if isinstance(value, tensor.Tensor):
        value = tensor.array(value)
    array = value if isinstance(value, (np.ndarray, np.generic)) else _of_python(value)
    array = np.asarray(array)
    if array.dtype.kind in "OSU":
        return as_dtype("string"), array.shape, [_bytes(item) for item in array.ravel().tolist()]
    dtype = as_dtype(array.dtype)
    array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)).reshape(array.shape)
    return dtype, array.shape, array.view(np.uint16) if dtype.name == "bfloat16" else array


def _of_python(value):
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return np.asarray(value)
    array = np.array(value)
    if array.dtype == np.float64 and not _holds_numpy(value):
        return array.astype(np.float32)
    if array.dtype == np.int64 and not _holds_numpy(value):
        bounds = np.iinfo(np.int32)
        if array.size == 0 or (array.min() >= bounds.min and array.max() <= bounds.max):
            return array.astype(np.int32)
    if array.dtype.kind == "O" and not all(isinstance(item, (str, bytes)) for item in array.ravel()):
        raise ValueError(f"{value!r} cannot become a tensor: its rows differ in length, or its values differ in type")
    return array


def _holds_numpy(value):
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, (np.generic, np.ndarray))


def _bytes(item):
    return item.encode() if isinstance(item, str) else bytes(item)
