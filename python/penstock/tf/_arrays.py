# SPDX-License-Identifier: Apache-2.0
"""The operations directly under `tf` that make and rearrange values, with TensorFlow's signatures and dtypes."""

import builtins

import numpy as np

from .. import _core, nest, ops
from ..dtypes import as_dtype
from ._operation import as_tensor, operation, pair


@operation
def constant(value, dtype=None, shape=None, name=None):
    """Returns a tensor of Python values or of an array. A single value fills `shape`."""
    made = _typed(value, dtype)
    if shape is None or made.shape == tuple(shape):
        return made
    return ops.broadcast_to(made, list(shape)) if made.ndim == 0 else ops.reshape(made, list(shape))


@operation
def convert_to_tensor(value, dtype=None, dtype_hint=None, name=None):
    """Returns Python values, an array or a tensor as a tensor."""
    return _typed(value, dtype)


@operation
def identity(input, name=None):  # noqa: A002 (as TensorFlow's)
    """Returns `input` itself."""
    return as_tensor(input)


@operation
def cast(x, dtype, name=None):
    """Converts the values to `dtype`."""
    return ops.cast(as_tensor(x), as_dtype(dtype))


@operation
def shape(input, out_type="int32", name=None):  # noqa: A002
    """Returns the dimensions, as a vector."""
    return as_tensor(ops.shape_of(as_tensor(input)), out_type)


@operation
def size(input, out_type="int32", name=None):  # noqa: A002
    """Returns the number of values."""
    return as_tensor(ops.size(as_tensor(input)), out_type)


@operation
def rank(input, name=None):  # noqa: A002
    """Returns the number of dimensions, which must be known."""
    return as_tensor(as_tensor(input).ndim)


@operation
def range(start, limit=None, delta=1, dtype=None, name=None):  # noqa: A001
    """Returns start, start + delta, … below limit; range(limit) begins at 0."""
    if limit is None:
        start, limit = 0, start
    given = [start, limit, delta]
    if all(not hasattr(value, "dtype") for value in given):
        default = "int32" if all(isinstance(value, int) for value in given) else "float32"
        return as_tensor(np.arange(*given).astype(as_dtype(dtype or default).name))
    if dtype is not None:
        given = [as_tensor(value, dtype) for value in given]
    return ops.range(*given)


@operation
def fill(dims, value, name=None):
    """Returns a tensor of shape `dims` filled with `value`. The dimensions may be traced."""
    return ops.fill(dims, as_tensor(value))


@operation
def zeros(shape, dtype="float32", name=None):
    """Returns a tensor filled with 0, false or "". The dimensions may be traced."""
    return ops.fill(shape, as_tensor("" if as_dtype(dtype) == "string" else np.zeros((), as_dtype(dtype).name)))


@operation
def ones(shape, dtype="float32", name=None):
    """Returns a tensor filled with 1 or true. The dimensions may be traced."""
    return ops.fill(shape, as_tensor(np.ones((), as_dtype(dtype).name)))


@operation
def zeros_like(input, dtype=None, name=None):  # noqa: A002
    """Returns a tensor of 0 with the shape of `input`."""
    return _like(input, dtype, zeros)


@operation
def ones_like(input, dtype=None, name=None):  # noqa: A002
    """Returns a tensor of 1 with the shape of `input`."""
    return _like(input, dtype, ones)


@operation
def eye(num_rows, num_columns=None, dtype="float32", name=None):
    """Returns a matrix with 1 where row and column are equal, else 0."""
    return as_tensor(np.eye(num_rows, num_columns, dtype=as_dtype(dtype).name))


@operation
def linspace(start, stop, num, name=None):
    """Returns `num` numbers from start to stop, including both."""
    return as_tensor(np.linspace(start, stop, num, dtype=np.float32))


@operation
def reshape(tensor, shape, name=None):
    """Returns the same values in this shape; one dimension may be -1 or traced."""
    if isinstance(shape, _core.Expr):
        shape = ops.unstack(shape)
    shape = [shape] if isinstance(shape, int) else list(shape)
    dims = [-1 if isinstance(dim, _core.Expr) else int(dim) for dim in shape]
    if dims.count(-1) > 1:
        raise ValueError(f"reshape: {dims.count(-1)} dimensions are traced or -1 in {shape!r}; at most one may be")
    return ops.reshape(as_tensor(tensor), dims)


@operation
def expand_dims(input, axis, name=None):  # noqa: A002
    """Inserts a dimension of 1 at `axis`."""
    return ops.expand_dims(as_tensor(input), axis)


@operation
def squeeze(input, axis=None, name=None):  # noqa: A002
    """Removes these dimensions of size 1. None: all dimensions whose size is known to be 1."""
    return ops.squeeze(as_tensor(input), axis)


@operation
def transpose(a, perm=None, conjugate=False, name="transpose"):
    """Reorders the axes as in `perm`. None reverses them."""
    return ops.transpose(as_tensor(a), perm)


@operation
def broadcast_to(input, shape, name=None):  # noqa: A002
    """Broadcasts the values to this shape."""
    return ops.broadcast_to(as_tensor(input), list(shape))


@operation
def tile(input, multiples, name=None):  # noqa: A002
    """Repeats the values `multiples` times along each axis."""
    return ops.tile(as_tensor(input), list(multiples))


@operation
def reverse(tensor, axis, name=None):
    """Reverses the values along `axis`, one or several."""
    return ops.reverse(as_tensor(tensor), axis)


@operation
def pad(tensor, paddings, mode="CONSTANT", constant_values=0, name=None):
    """Pads each axis by (before, after); mode "CONSTANT", "REFLECT" or "SYMMETRIC"."""
    x = as_tensor(tensor)
    value = constant_values if mode.upper() == "CONSTANT" and x.dtype != "string" else None
    return ops.pad(x, [tuple(map(int, one)) for one in paddings], mode, value)


@operation
def slice(input_, begin, size, name=None):  # noqa: A001
    """Returns `size` values of each axis, starting at `begin`. Size -1 means up to the end."""
    return ops.slice(as_tensor(input_), list(begin), list(size))


@operation
def gather(params, indices, axis=0, batch_dims=0, name=None):
    """Returns the slices with these indices along `axis`."""
    if batch_dims != 0:
        raise NotImplementedError("gather: batch_dims must be 0; gather in a map before batch instead")
    return ops.gather(as_tensor(params), as_tensor(indices), axis or 0)


@operation
def concat(values, axis, name="concat"):
    """Joins the values along an existing axis."""
    return ops.concat([as_tensor(value) for value in values], axis)


@operation
def stack(values, axis=0, name="stack"):
    """Joins the values along a new axis."""
    return ops.stack([as_tensor(value) for value in values], axis)


@operation
def unstack(value, num=None, axis=0, name="unstack"):
    """Returns the slices along an axis of known length, as a list."""
    return list(ops.unstack(as_tensor(value), axis))


@operation
def split(value, num_or_size_splits, axis=0, num=None, name="split"):
    """Divides an axis of known length into parts of equal length, or of these lengths. Returns them as a list."""
    x = as_tensor(value)
    axis = axis % x.ndim
    sizes = num_or_size_splits
    if isinstance(sizes, int):
        length = x.shape[axis]
        if length is None or length % sizes:
            raise ValueError(f"split: axis {axis} has length {length}, which cannot make {sizes} equal parts")
        sizes = [length // sizes] * sizes
    parts, begin = [], 0
    for count in sizes:
        whole = (builtins.slice(None),) * axis
        parts.append(x[(*whole, builtins.slice(begin, begin + count))])
        begin += count
    return parts


@operation
def where(condition, x=None, y=None, name=None):
    """Returns x where the condition holds, else y; both are computed."""
    if x is None or y is None:
        raise NotImplementedError("where: pass x and y; without them the number of rows would depend on values")
    return ops.where(condition, *pair(x, y))


@operation
def cond(pred, true_fn=None, false_fn=None, name=None):
    """Returns the result of one of the functions. Both are computed, and their results must be nests of one structure."""
    yes, no = true_fn(), false_fn()
    nest.assert_same(yes, no, "the results of true_fn and false_fn")
    others = iter(nest.leaves(no))
    return nest.map_leaves(lambda leaf: ops.where(pred, *pair(leaf, next(others))), yes)


@operation
def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None):
    """Returns `on_value` at each index of a new last axis, else `off_value`."""
    if axis not in (None, -1):
        raise NotImplementedError(f"one_hot: axis must be None or -1 (last), not {axis}; use transpose to move it")
    if on_value is None and off_value is None:
        return ops.one_hot(as_tensor(indices), int(depth), as_dtype("float32" if dtype is None else dtype))
    there = ops.one_hot(as_tensor(indices), int(depth), as_dtype("float32")) > 0.5
    on, off = (as_tensor(v, dtype) for v in (1 if on_value is None else on_value, 0 if off_value is None else off_value))
    return ops.where(there, on, off)


@operation
def sort(values, axis=-1, direction="ASCENDING", name=None):
    """Sorts the values along `axis`; direction "ASCENDING" or "DESCENDING"."""
    return ops.sort(as_tensor(values), axis, direction == "DESCENDING")


@operation
def argsort(values, axis=-1, direction="ASCENDING", stable=False, name=None):
    """Returns the int32 indices that sort the values."""
    return as_tensor(ops.argsort(as_tensor(values), axis, direction == "DESCENDING"), "int32")


@operation
def clip_by_value(t, clip_value_min, clip_value_max, name=None):
    """Clips the values to these bounds."""
    return ops.clip(as_tensor(t), clip_value_min, clip_value_max)


@operation
def matmul(a, b, transpose_a=False, transpose_b=False, name=None):
    """Returns the product of the matrices in the last two axes."""
    a, b = as_tensor(a), as_tensor(b)
    return ops.matmul(_turned(a) if transpose_a else a, _turned(b) if transpose_b else b)


def _typed(value, dtype):
    if dtype is not None and not hasattr(value, "dtype"):
        if as_dtype(dtype) != "string":
            value = np.array(value, dtype=as_dtype(dtype).as_numpy_dtype)
    return as_tensor(value, dtype)


def _like(given, dtype, make):
    x = as_tensor(given)
    known = x.shape is not None and None not in x.shape
    return make(list(x.shape) if known else ops.shape_of(x), x.dtype if dtype is None else dtype)


def _turned(x):
    last = x.ndim - 1
    return ops.transpose(x, [*builtins.range(last - 1), last, last - 1])


NAMES = [name for name, value in list(globals().items()) if getattr(value, "__wrapped__", None) is not None]
