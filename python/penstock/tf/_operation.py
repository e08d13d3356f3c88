# SPDX-License-Identifier: Apache-2.0
"""Makes Penstock's operations return values outside traced functions, as TensorFlow's do."""

import functools

from .. import _core, expr, values
from ..dataset import Dataset


def operation(function):
    """Wraps `function`, which takes traced tensors. Outside a traced function it runs at once and returns Tensors, as in
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
    """Returns `value` as a traced tensor. Unless `dtype` is given, Python numbers and lists become float32 or, if they
    fit, int32, as in TensorFlow."""
    if not isinstance(value, _core.Expr):
        if isinstance(value, (list, tuple)) and any(isinstance(member, _core.Expr) for member in value):
            value = _core.ops.stack([as_tensor(member) for member in value])
        else:
            given, shape, data = values.given(value)
            value = _core.constant(given, list(shape), data)
    return value if dtype is None or value.dtype == dtype else _core.ops.cast(value, expr.as_dtype(dtype))


def pair(a, b):
    """Returns both operands. Two Python numbers become tensors; a single one will get the dtype of the other operand."""
    if expr._is_literal(a) and expr._is_literal(b):
        return as_tensor(a), as_tensor(b)
    return a, b
