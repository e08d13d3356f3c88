# SPDX-License-Identifier: Apache-2.0
"""Traced functions: a function is called once with Exprs, when the dataset is built. Its operations are recorded and
run on any worker without Python. docs/python.md lists what a traced function may contain."""

import contextlib
import threading

import numpy as np

from . import _core, nest, values, volatile_calls
from .dtypes import as_dtype

Expr = _core.Expr
_ops = _core.ops


class Untraceable(TypeError):
    """The function needs values, or does something that cannot be recorded, so only Python can run it."""


class _Tracing(threading.local):
    depth = 0


_tracing = _Tracing()


@contextlib.contextmanager
def tracing(function):
    """A context in which this thread traces the function of a dataset."""
    outermost = _tracing.depth == 0
    _tracing.depth += 1
    try:
        with volatile_calls.noticed(function) if outermost else contextlib.nullcontext():
            yield
    finally:
        _tracing.depth -= 1


def is_tracing():
    """Returns whether this thread is tracing a function of a dataset."""
    return _tracing.depth > 0


def as_expr(value):
    """Returns a nest of Exprs, Python values, arrays and tensors as one Expr. A Python number gets the dtype of the
    other operand."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, dict):
        return _core.struct([(key, as_expr(member)) for key, member in value.items()])
    if isinstance(value, tuple):
        return _core.tuple([as_expr(member) for member in value])
    if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
        return _core.literal(value)
    if isinstance(value, list) and _has_expr(value):
        return _ops.stack([as_expr(member) for member in value])
    dtype, shape, data = values.given(value)
    return _core.constant(dtype, list(shape), data)


def _has_expr(value):
    return isinstance(value, Expr) or isinstance(value, (list, tuple)) and any(map(_has_expr, value))


def nest_of(expr, like):
    """Returns the members of an Expr that is a nest, nested as `like`."""

    def unpack(at, spec):
        if isinstance(spec, dict):
            return {key: unpack(at.member(key), member) for key, member in spec.items()}
        if isinstance(spec, tuple):
            return tuple(unpack(at.member(i), member) for i, member in enumerate(spec))
        return at

    return nest.as_like(like, unpack(expr, expr.spec))


def traced(function, like, result):
    """Returns `function` as a function from Expr to Expr. If elements are tuples, their members are passed as separate
    arguments. The nest that `function` returns is appended to the list `result`."""

    def call(element):
        element = nest_of(element, like)
        with tracing(function):
            given = function(*element) if type(element) is tuple else function(element)
        if isinstance(given, list):
            given = as_expr(given)
        result.append(given)
        return as_expr(given)

    return call


# --- Operators -----------------------------------------------------------------------


def _dtype(expr):
    spec = expr.spec
    if nest.is_nest(spec):
        raise TypeError("this is a tuple or dict of tensors, not a tensor; select one of its members first")
    return spec.dtype


def _is(expr, name):
    return isinstance(expr, Expr) and _dtype(expr).name == name


def _truediv(a, b):
    """Divides like NumPy: the quotient of integers is float64."""
    a, b = (
        _ops.cast(as_expr(x), "float64") if _dtype(as_expr(x)).is_integer and not _is_literal(x) else x for x in (a, b)
    )
    if _is_literal(a) or _is_literal(b):
        a, b = (float(x) if _is_literal(x) else x for x in (a, b))
    return _ops.divide(a, b)


def _floordiv(a, b):
    quotient = _ops.divide(a, b)
    return _ops.floor(quotient) if _dtype(quotient).is_floating else quotient


def _is_literal(value):
    return isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)


def _by_dtype(of_bool, of_integers):
    return lambda a, b: (of_bool if _is(a, "bool") or _is(b, "bool") else of_integers)(a, b)


def _add(a, b):
    return _ops.string_concat(a, b) if _is(a, "string") or _is(b, "string") else _ops.add(a, b)


def _invert(x):
    return _ops.logical_not(x) if _is(x, "bool") else _ops.invert(x)


_BINARY = {
    "add": _add,
    "sub": _ops.subtract,
    "mul": _ops.multiply,
    "truediv": _truediv,
    "floordiv": _floordiv,
    "mod": _ops.mod,
    "pow": _ops.power,
    "matmul": _ops.matmul,
    "and": _by_dtype(_ops.logical_and, _ops.bitwise_and),
    "or": _by_dtype(_ops.logical_or, _ops.bitwise_or),
    "xor": _by_dtype(_ops.not_equal, _ops.bitwise_xor),
    "lshift": _ops.left_shift,
    "rshift": _ops.right_shift,
}
_COMPARE = {
    "eq": _ops.equal,
    "ne": _ops.not_equal,
    "lt": _ops.less,
    "le": _ops.less_equal,
    "gt": _ops.greater,
    "ge": _ops.greater_equal,
}


def _getitem(expr, key):
    """Indexes like Python and NumPy: integers, slices, None for a new axis, one Ellipsis, and an Expr for a computed
    index."""
    if isinstance(key, Expr):
        return expr.at(key)
    if isinstance(key, str):
        return expr.member(key)
    keys = key if isinstance(key, tuple) else (key,)
    if Ellipsis in [k for k in keys if not isinstance(k, Expr)]:
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        taken = sum(k is not None for k in keys) - 1
        keys = keys[:at] + (slice(None),) * (expr.ndim - taken) + keys[at + 1 :]
    ranges, squeezed, added, axis = [], [], [], 0
    for k in keys:
        if k is None:
            added.append(axis - len(squeezed))
            axis += 1
        elif isinstance(k, slice):
            ranges.append((k.start, k.stop, 1 if k.step is None else k.step))
            axis += 1
        elif isinstance(k, (int, np.integer)) and not isinstance(k, bool):
            if len(keys) == 1:
                return expr.member(int(k))
            ranges.append((int(k), int(k) + 1 if k != -1 else None, 1))
            squeezed.append(len(ranges) - 1)
            axis += 1
        else:
            raise TypeError(f"{k!r} is not a valid index; use integers, slices, None, ... or a traced integer")
    result = _ops.strided_slice(expr, ranges) if ranges else expr
    if squeezed:
        result = _ops.squeeze(result, squeezed)
    for place in added:
        result = _ops.expand_dims(result, place)
    return result


def _no_value(expr, *_):
    raise Untraceable(
        "a tensor has no value while its function is traced; use ps.ops.where instead of if, and & | ~ instead of and, "
        "or, not; or pass an output_signature to run the function in Python"
    )


def _reduction(function):
    def reduce(self, axis=None, keepdims=False):
        axes = [] if axis is None else [axis] if isinstance(axis, int) else list(axis)
        return function(self, axes, keepdims)

    return reduce


def _along(function):
    """As in NumPy: without an axis, the tensor is flattened first."""

    def along(x, *arguments, axis=None):
        return function(_ops.reshape(x, [-1]), *arguments, 0) if axis is None else function(x, *arguments, axis)

    return along


def _shape(expr):
    spec = expr.spec
    if nest.is_nest(spec):
        raise TypeError("this is a tuple or dict of tensors, not a tensor; select one of its members first")
    return spec.shape


def _ndim(expr):
    shape = _shape(expr)
    if shape is None:
        raise TypeError("the number of dimensions is unknown while the function is traced")
    return len(shape)


# NumPy's functions and their replacements for an Expr (docs/tracing.md lists them).
NUMPY = {
    np.add: _add,
    np.subtract: _ops.subtract,
    np.multiply: _ops.multiply,
    np.true_divide: _truediv,
    np.floor_divide: _floordiv,
    np.remainder: _ops.mod,
    np.power: _ops.power,
    np.matmul: _ops.matmul,
    np.equal: _ops.equal,
    np.not_equal: _ops.not_equal,
    np.less: _ops.less,
    np.less_equal: _ops.less_equal,
    np.greater: _ops.greater,
    np.greater_equal: _ops.greater_equal,
    np.logical_and: _ops.logical_and,
    np.logical_or: _ops.logical_or,
    np.logical_not: _ops.logical_not,
    np.bitwise_and: _BINARY["and"],
    np.bitwise_or: _BINARY["or"],
    np.bitwise_xor: _BINARY["xor"],
    np.invert: _invert,
    np.left_shift: _ops.left_shift,
    np.right_shift: _ops.right_shift,
    np.minimum: _ops.minimum,
    np.maximum: _ops.maximum,
    np.negative: _ops.negative,
    np.absolute: _ops.abs,
    np.sign: _ops.sign,
    np.floor: _ops.floor,
    np.ceil: _ops.ceil,
    np.rint: _ops.round,
    np.sqrt: _ops.sqrt,
    np.exp: _ops.exp,
    np.expm1: _ops.expm1,
    np.log: _ops.log,
    np.log1p: _ops.log1p,
    np.sin: _ops.sin,
    np.cos: _ops.cos,
    np.tan: _ops.tan,
    np.arcsin: _ops.asin,
    np.arccos: _ops.acos,
    np.arctan: _ops.atan,
    np.arctan2: _ops.atan2,
    np.sinh: _ops.sinh,
    np.cosh: _ops.cosh,
    np.tanh: _ops.tanh,
    np.isnan: _ops.is_nan,
    np.isinf: _ops.is_inf,
    np.isfinite: _ops.is_finite,
    np.where: _ops.where,
    np.clip: _ops.clip,
    np.sum: _reduction(_ops.reduce_sum),
    np.mean: _reduction(_ops.reduce_mean),
    np.prod: _reduction(_ops.reduce_prod),
    np.max: _reduction(_ops.reduce_max),
    np.min: _reduction(_ops.reduce_min),
    np.any: _reduction(_ops.reduce_any),
    np.all: _reduction(_ops.reduce_all),
    np.reshape: lambda x, shape: _ops.reshape(x, [shape] if isinstance(shape, int) else list(shape)),
    np.expand_dims: _ops.expand_dims,
    np.squeeze: lambda x, axis=(): _ops.squeeze(x, [axis] if isinstance(axis, int) else list(axis)),
    np.transpose: lambda x, axes=(): _ops.transpose(x, list(axes)),
    np.concatenate: lambda parts, axis=0: _ops.concat([as_expr(part) for part in parts], axis),
    np.stack: lambda parts, axis=0: _ops.stack([as_expr(part) for part in parts], axis),
    np.take: _along(_ops.gather),
    np.sort: lambda x, axis=-1: _ops.sort(x, axis),
    np.argsort: lambda x, axis=-1: _ops.argsort(x, axis),
    np.argmax: _along(_ops.argmax),
    np.argmin: _along(_ops.argmin),
    np.tile: lambda x, reps: _ops.tile(x, [reps] if isinstance(reps, int) else list(reps)),
    np.flip: lambda x, axis: _ops.reverse(x, [axis] if isinstance(axis, int) else list(axis)),
}


_WAYS = "docs/tracing.md lists what can be traced; or pass an output_signature to run the function in Python"


def _array_ufunc(self, ufunc, method, *inputs, **keywords):
    if method != "__call__" or keywords or ufunc not in NUMPY:
        raise Untraceable(f"np.{ufunc.__name__} ({method}) cannot be traced; {_WAYS}")
    return NUMPY[ufunc](*inputs)


def _array_function(self, function, types, arguments, keywords):
    if function not in NUMPY:
        raise Untraceable(f"np.{function.__name__} cannot be traced; {_WAYS}")
    return NUMPY[function](*arguments, **keywords)


def _astype(self, dtype):
    """Converts the values to this dtype."""
    return _ops.cast(self, as_dtype(dtype))


def _reshape(self, *shape):
    """Returns the same values in this shape; one dimension may be -1."""
    return NUMPY[np.reshape](self, shape[0] if len(shape) == 1 else shape)


def _method(name, function):
    def reduce(self, axis=None, keepdims=False):
        return function(self, axis, keepdims)

    reduce.__name__ = name
    reduce.__doc__ = f"NumPy's `{name}` over `axis`: one, several, or all if None."
    return reduce


def _dress():
    for name, function in _BINARY.items():
        setattr(Expr, f"__{name}__", lambda self, other, function=function: function(self, other))
        setattr(Expr, f"__r{name}__", lambda self, other, function=function: function(other, self))
    for name, function in _COMPARE.items():
        setattr(Expr, f"__{name}__", lambda self, other, function=function: function(self, other))
    Expr.__neg__ = lambda self: _ops.negative(self)
    Expr.__abs__ = lambda self: _ops.abs(self)
    Expr.__invert__ = _invert
    Expr.__getitem__ = _getitem
    for name in "bool int float index iter len array hash str format".split():
        setattr(Expr, f"__{name}__", _no_value)
    Expr.__array_ufunc__ = _array_ufunc
    Expr.__array_function__ = _array_function
    Expr.dtype = property(_dtype)
    Expr.shape = property(_shape)
    Expr.ndim = property(_ndim)
    Expr.T = property(lambda self: _ops.transpose(self))
    Expr.astype = _astype
    Expr.reshape = _reshape
    for name, function in {
        "sum": np.sum,
        "mean": np.mean,
        "prod": np.prod,
        "max": np.max,
        "min": np.min,
        "any": np.any,
        "all": np.all,
    }.items():
        setattr(Expr, name, _method(name, NUMPY[function]))
    Expr.__repr__ = lambda self: f"<penstock.Expr {self.spec}>"


_dress()
