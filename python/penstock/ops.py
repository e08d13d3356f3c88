# SPDX-License-Identifier: Apache-2.0
"""Operations for traced functions, in addition to Python's operators and NumPy's functions. docs/expressions.md of the
repository lists their arguments and results. All accept traced tensors, arrays and Python numbers."""

import builtins

import numpy as np

from . import _core
from ._core.ops import *  # noqa: F401,F403
from ._core.ops import Interpolation, PadMode, PadSide  # noqa: F401


def _axes(axis):
    return [] if axis is None else [axis] if isinstance(axis, int) else list(axis)


def _reduction(name):
    function = getattr(_core.ops, name)

    def reduce(x, axis=None, keepdims=False):
        return function(x, _axes(axis), keepdims)

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"{name} over `axis`: one, several, or all if None."
    return reduce


reduce_sum = _reduction("reduce_sum")
reduce_mean = _reduction("reduce_mean")
reduce_prod = _reduction("reduce_prod")
reduce_max = _reduction("reduce_max")
reduce_min = _reduction("reduce_min")
reduce_any = _reduction("reduce_any")
reduce_all = _reduction("reduce_all")


def squeeze(x, axis=None):  # type: ignore[no-redef]
    """Removes these dimensions of size 1. None: all dimensions whose size is known to be 1."""
    return _core.ops.squeeze(x, _axes(axis))


def transpose(x, perm=None):  # type: ignore[no-redef]
    """Reorders the axes as in `perm`. None reverses them."""
    return _core.ops.transpose(x, [] if perm is None else list(perm))


def reverse(x, axis):  # type: ignore[no-redef]
    """Reverses the values along `axis`, one or several."""
    return _core.ops.reverse(x, _axes(axis))


def range(start, limit=None, delta=1):  # type: ignore[no-redef]  # noqa: A001 (as tf.range)
    """Returns start, start + delta, … below limit; range(limit) begins at 0."""
    return _core.ops.range(0, start, delta) if limit is None else _core.ops.range(start, limit, delta)


def pad(x, paddings, mode="CONSTANT", constant_values=None):  # type: ignore[no-redef]
    """Pads each axis by (before, after); mode "CONSTANT", "REFLECT" or "SYMMETRIC"."""
    return _core.ops.pad(x, paddings, getattr(PadMode, mode.upper()), constant_values)


def fill(shape, value):
    """Returns a tensor of this shape filled with `value`. Dimensions may be traced integers, or the whole shape may be a
    traced vector."""
    dims = _core.ops.unstack(shape) if isinstance(shape, _core.Expr) else list(shape)
    if not any(isinstance(dim, _core.Expr) for dim in dims):
        return _core.ops.broadcast_to(value, dims)
    everywhere = True
    for axis, dim in enumerate(dims):
        row = _core.ops.range(0, dim) >= 0 if isinstance(dim, _core.Expr) else np.ones(dim, bool)
        alone = [-1 if other == axis else 1 for other in builtins.range(len(dims))]
        everywhere = _core.ops.logical_and(everywhere, _core.ops.reshape(row, alone))
    return _core.ops.where(everywhere, value, value)
