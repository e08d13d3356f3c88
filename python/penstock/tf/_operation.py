# SPDX-License-Identifier: Apache-2.0
"""Makes Penstock's operations behave as TensorFlow's outside traced functions: they return values."""

import functools

from .. import _core, expr, values
from ..dataset import Dataset


def operation(function):
    """Wraps `function` of traced tensors. Where nothing is traced it runs at once and returns Tensors, as in
    TensorFlow."""

    @functools.wraps(function)
    def called(*args, **keywords):
        if expr.is_tracing():
            return function(*args, **keywords)
        given = []

        def traced(_):
            given.append(function(*args, **keywords))
            return tuple(given[0]) if type(given[0]) is list else given[0]

        result = Dataset.range(1).map(traced).get_single_element()
        return list(result) if type(given[0]) is list else result

    return called


def as_tensor(value, dtype=None):
    """Returns `value` traced. Python numbers and lists are float32 and int32 if they fit, as in TensorFlow, unless
    `dtype` is given."""
    if not isinstance(value, _core.Expr):
        if isinstance(value, (list, tuple)) and any(isinstance(member, _core.Expr) for member in value):
            value = _core.ops.stack([as_tensor(member) for member in value])
        else:
            given, shape, data = values.given(value)
            value = _core.constant(given, list(shape), data)
    return value if dtype is None or value.dtype == dtype else _core.ops.cast(value, expr.as_dtype(dtype))


def pair(a, b):
    """Returns both traced; a Python number takes the dtype of the other operand, and two numbers become tensors."""
    if expr._is_literal(a) and expr._is_literal(b):
        return as_tensor(a), as_tensor(b)
    return a, b
