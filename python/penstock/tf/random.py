# SPDX-License-Identifier: Apache-2.0
"""tf.random: draws that depend only on the seed and the element (docs/expressions.md). `seed` arguments are accepted
and ignored; `set_seed` sets the seed of all iterators."""

from .. import iterator, ops
from ..dtypes import as_dtype
from ._operation import as_tensor, operation


@operation
def uniform(shape, minval=0, maxval=None, dtype="float32", seed=None, name=None):
    """Draws values from minval up to, but not including, maxval. The default of maxval is 1, for floats only."""
    dtype = as_dtype(dtype)
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"uniform: maxval must be given for {dtype}")
        maxval = 1
    return ops.random_uniform([int(dim) for dim in shape], as_tensor(minval, dtype), as_tensor(maxval, dtype))


@operation
def normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None):
    """Draws values from a normal distribution with this mean and deviation."""
    return ops.random_normal([int(dim) for dim in shape], mean, stddev, as_dtype(dtype))


def set_seed(seed):
    """Sets the seed of iterators that are created later without a seed."""
    iterator.default_seed = None if seed is None else int(seed)
