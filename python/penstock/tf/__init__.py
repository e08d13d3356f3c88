# SPDX-License-Identifier: Apache-2.0
"""Penstock's objects under TensorFlow's paths, so that a tf.data service script needs to change only its import line:

    import penstock.tf as tf
"""

import functools
import typing

from .. import (  # noqa: F401
    DType,
    RaggedTensor,
    RaggedTensorSpec,
    SparseTensor,
    SparseTensorSpec,
    Tensor,
    TensorSpec,
    __version__,
    as_dtype,
    bfloat16,
    complex64,
    complex128,
    errors,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .. import bool  # noqa: A004, F401
from .. import nest as _nest
from .. import tensor as _tensor
from . import _arrays, data, distribute, image, io, math, random, strings, train  # noqa: F401
from ..functions import py_function as _py_function

if typing.TYPE_CHECKING:  # the names that are made dynamically below

    def __getattr__(name: str) -> typing.Callable[..., typing.Any]: ...


def function(func=None, input_signature=None, **_):
    """Returns `func` unchanged: nothing is compiled. With `input_signature`, one nest of specs for each argument, a
    call whose arguments do not fit raises TypeError."""
    if func is None:
        return functools.partial(function, input_signature=input_signature)
    if input_signature is None:
        return func

    @functools.wraps(func)
    def checked(*args):
        if len(args) != len(input_signature):
            wanted = len(input_signature)
            raise TypeError(f"{func.__name__} takes {wanted} argument(s) by its input_signature, not {len(args)}")
        for i, (spec, given) in enumerate(zip(input_signature, args)):
            _nest.assert_same(spec, given, f"argument {i} of {func.__name__} and its input_signature")
            for of_leaf, leaf in zip(_nest.leaves(spec), _nest.leaves(given)):
                if not of_leaf.is_compatible_with(leaf):
                    raise TypeError(f"argument {i} of {func.__name__} is {leaf!r}, but input_signature has {of_leaf!r}")
        return func(*args)

    return checked


def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None):
    """Runs func with NumPy arrays in a Python process (penstock.py_function); `Tout`: a dtype, or a list of dtypes."""
    several = isinstance(Tout, (list, tuple))
    dtypes_ = tuple(Tout) if several else (Tout,)
    signature = tuple(TensorSpec(None, dtype) for dtype in dtypes_)
    found = _py_function(func, signature if several else signature[0])(*inp)
    return list(found) if several else found


def py_function(func=None, inp=None, Tout=None, name=None):
    """Same as numpy_function, but the arguments have TensorFlow's numpy(), so the workers' Python needs this package."""

    @functools.wraps(func)
    def called(*args):
        return func(*[_tensor.with_numpy(arg) for arg in args])

    return numpy_function(called, inp, Tout)


globals().update({name: getattr(_arrays, name) for name in _arrays.NAMES})
for _name in (
    "abs acos add argmax argmin asin atan atan2 cos cosh cumsum divide equal exp floor greater greater_equal less "
    "less_equal logical_and logical_not logical_or maximum minimum multiply negative not_equal pow reduce_all "
    "reduce_any reduce_max reduce_mean reduce_min reduce_prod reduce_sum round sigmoid sign sin sinh sqrt square "
    "subtract tan tanh truediv"
).split():
    globals()[_name] = getattr(math, _name)
