# SPDX-License-Identifier: Apache-2.0
"""tf.random: draws that depend on the seed and the element alone (docs/expressions.md), so `seed` arguments are taken
and not needed; `set_seed` is for all iterators."""

from .. import iterator, ops
from ..dtypes import as_dtype
from ._operation import as_tensor, operation


@operation
def uniform(shape, minval=0, maxval=None, dtype="float32", seed=None, name=None):
    """From minval to below maxval, which is 1 for floats if not given."""
    dtype = as_dtype(dtype)
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"uniform: maxval must be given for {dtype}")
        maxval = 1
    return ops.random_uniform([int(dim) for dim in shape], as_tensor(minval, dtype), as_tensor(maxval, dtype))


@operation
def normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None):
    """Of this mean and deviation."""
    return ops.random_normal([int(dim) for dim in shape], mean, stddev, as_dtype(dtype))


def set_seed(seed):
    """The seed of iterators that are made from now on, and are given none."""
    iterator.default_seed = None if seed is None else int(seed)
