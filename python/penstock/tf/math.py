# SPDX-License-Identifier: Apache-2.0
"""tf.math: TensorFlow's signatures and dtypes over penstock.ops."""

import collections
import typing

from .. import expr, ops
from ..expr import as_expr
from ._operation import as_tensor, operation, pair

TopKV2 = collections.namedtuple("TopKV2", "values indices")

if typing.TYPE_CHECKING:  # the names that are made dynamically below

    def __getattr__(name: str) -> typing.Callable[..., typing.Any]: ...


def _unary(name, function):
    @operation
    def apply(x, name=None):
        return function(as_tensor(x))

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"tf.math.{name}, value by value."
    return apply


def _binary(name, function):
    @operation
    def apply(x, y, name=None):
        return function(*pair(x, y))

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"tf.math.{name}, value by value, broadcast."
    return apply


def _as_given(function):
    """Returns sums in the dtype of the input, as TensorFlow does. NumPy's sums of integers have a wider dtype."""
    return lambda x, axis, keepdims: ops.cast(function(x, axis, keepdims), x.dtype)


def _reduction(name, function):
    @operation
    def reduce(input_tensor, axis=None, keepdims=False, name=None):
        return function(as_tensor(input_tensor), axis, keepdims)

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"tf.math.{name} over `axis`: one, several, or all if None."
    return reduce


_UNARY = {
    name: getattr(ops, name)
    for name in (
        "abs acos asin atan ceil cos cosh exp expm1 floor is_finite is_inf is_nan log log1p logical_not negative round "
        "sigmoid sign sin sinh sqrt tan tanh"
    ).split()
}
_UNARY["square"] = lambda x: x * x
_UNARY["rsqrt"] = lambda x: 1 / ops.sqrt(x)
_BINARY = {
    name: getattr(ops, name)
    for name in (
        "atan2 equal greater greater_equal less less_equal logical_and logical_or maximum minimum multiply "
        "not_equal subtract"
    ).split()
}
_BINARY["add"] = lambda x, y: as_expr(x) + y
_BINARY["divide"] = _BINARY["truediv"] = lambda x, y: as_expr(x) / y
_BINARY["floordiv"] = lambda x, y: as_expr(x) // y
_BINARY["mod"] = _BINARY["floormod"] = ops.mod
_BINARY["pow"] = ops.power
_BINARY["squared_difference"] = lambda x, y: ops.multiply(as_expr(x) - y, as_expr(x) - y)
_REDUCTIONS = {
    "reduce_sum": _as_given(ops.reduce_sum),
    "reduce_prod": _as_given(ops.reduce_prod),
    "reduce_mean": _as_given(ops.reduce_mean),
    "reduce_max": ops.reduce_max,
    "reduce_min": ops.reduce_min,
    "reduce_any": ops.reduce_any,
    "reduce_all": ops.reduce_all,
}
globals().update({name: _unary(name, function) for name, function in _UNARY.items()})
globals().update({name: _binary(name, function) for name, function in _BINARY.items()})
globals().update({name: _reduction(name, function) for name, function in _REDUCTIONS.items()})


@operation
def reduce_variance(input_tensor, axis=None, keepdims=False, name=None):
    """Returns the mean of the squared distances from the mean."""
    x = as_tensor(input_tensor)
    apart = x - ops.reduce_mean(x, axis, True)
    return ops.reduce_mean(apart * apart, axis, keepdims)


@operation
def reduce_std(input_tensor, axis=None, keepdims=False, name=None):
    """Returns the square root of the variance."""
    return ops.sqrt(reduce_variance(input_tensor, axis, keepdims))


@operation
def argmax(input, axis=None, output_type="int64", name=None):  # noqa: A002 (as TensorFlow's)
    """Returns the index of the largest value along `axis`; axis None means 0."""
    return as_tensor(ops.argmax(as_tensor(input), 0 if axis is None else axis), output_type)


@operation
def argmin(input, axis=None, output_type="int64", name=None):  # noqa: A002
    """Returns the index of the smallest value along `axis`; axis None means 0."""
    return as_tensor(ops.argmin(as_tensor(input), 0 if axis is None else axis), output_type)


@operation
def cumsum(x, axis=0, exclusive=False, reverse=False, name=None):
    """Returns running sums along `axis`."""
    x = as_tensor(x)
    return ops.cast(ops.cumsum(x, axis, exclusive, reverse), x.dtype)


@operation
def softmax(logits, axis=-1, name=None):
    """Returns exp(logits) divided by their sum along `axis`."""
    x = as_tensor(logits)
    powers = ops.exp(x - ops.reduce_max(x, axis, True))
    return powers / ops.reduce_sum(powers, axis, True)


@operation
def top_k(input, k=1, sorted=True, name=None):  # noqa: A002
    """Returns (values, indices) of the k largest values along the last axis."""
    found = ops.top_k(as_tensor(input), k)
    return TopKV2(found.member(0), ops.cast(found.member(1), expr.as_dtype("int32")))
