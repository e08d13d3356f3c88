# SPDX-License-Identifier: Apache-2.0
"""Functions that stay Python: they are sent with the dataset, by import path or by value. They run in Python processes
beside the workers, or beside this program if it reads the dataset itself. docs/python.md has their rules."""

import functools
import itertools
import json
import os
import sys

import numpy as np

from . import _core, expr, nest, spec
from .dtypes import as_dtype

MOST_BYTES = 16 << 20


class PyFunction:
    """The result of py_function. A call with traced tensors is recorded; a call with other arguments calls the
    function."""

    def __init__(self, function, output_signature=None, deterministic=True, version=None, by_value=False):
        if not callable(function):
            raise TypeError(f"py_function expects a callable, not {function!r}")
        self.__penstock_function__ = function
        self.output_signature = output_signature
        self._options = deterministic, version, by_value
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args):
        if not any(isinstance(leaf, expr.Expr) for leaf in nest.leaves(args)):
            return self.__penstock_function__(*args)
        if self.output_signature is None:
            raise TypeError(f"{self!r} has no output_signature; pass it: py_function(function, output_signature=…)")
        return self._recorded("map", self.output_signature, args)

    def rows(self, *args):
        """Returns all elements that the function returns for these arguments, stacked as one tensor along a new dimension."""
        return self._recorded("rows", nest.map_leaves(_row, self.output_signature), args)

    def with_signature(self, output_signature):
        """Returns the function itself, or a copy with this signature if it has none."""
        if self.output_signature is not None:
            return self
        return PyFunction(self.__penstock_function__, output_signature, *self._options)

    def generator(self):
        """Returns the dataset of the elements that the function yields when it is called without arguments."""
        call = _call("generator", (), self.output_signature)
        _use()
        name, pickle, version, deterministic = self._shipped()
        return _core.from_generator(name, pickle, version, call, spec.plain(self.output_signature), deterministic)

    def __repr__(self):
        return f"<penstock.py_function {_name(self.__penstock_function__)}>"

    def _recorded(self, kind, output, args):
        call = _call(kind, args, self.output_signature)
        _use()
        name, pickle, version, deterministic = self._shipped()
        result = _core.call_python(
            name, pickle, version, call, spec.plain(output), deterministic, expr.as_expr(tuple(args))
        )
        return expr.nest_of(result, output)

    def _shipped(self):
        deterministic, version, by_value = self._options
        name, pickle = _ship(self.__penstock_function__, by_value)
        return name, pickle, "" if version is None else str(version), deterministic


def py_function(function=None, output_signature=None, *, deterministic=True, version=None, by_value=False):
    """Marks `function` as a Python function for `map`, `filter`, `flat_map` and inside traced functions. It is not
    traced, but runs in a Python process, with NumPy arrays and scalars, and strings as bytes.

    output_signature: a nest of TensorSpec that describes its result. deterministic: False if equal arguments may give
    different results; such a function is refused where elements are selected by value. version: represents the
    function when datasets are compared, instead of its pickled bytes. by_value: sends the function itself even if it
    could be imported. Also a decorator: `@ps.py_function(output_signature=…)`.
    """
    if function is None:
        return lambda f: PyFunction(f, output_signature, deterministic, version, by_value)
    return PyFunction(function, output_signature, deterministic, version, by_value)


def traced_or_sent(build, function, output_signature):
    """Returns build(function), which traces it. With an `output_signature`, returns build(py_function(function)) if
    tracing fails, or gives a result that does not match the signature."""
    if isinstance(function, PyFunction):
        return build(function)
    try:
        built = build(function)
    except Exception:
        if output_signature is None:
            raise
    else:
        if output_signature is None or _fits(output_signature, built.element_spec):
            return built
    return build(PyFunction(function, output_signature))


def applied(function, args):
    """Returns a function without arguments that calls `function` with `args` as NumPy arrays."""
    return functools.partial(function, *[np.asarray(arg) if isinstance(arg, (list, tuple)) else arg for arg in args])


def set_python_processes(count):
    """Sets the number of Python processes that run the functions of datasets that this program reads itself. The default
    is the number of cores. The setting applies to iterators of datasets that are built after this call."""
    if count < 1:
        raise ValueError(f"count must be at least 1, not {count}")
    global _processes
    _processes = int(count)
    _use()


def interpreter_and_path():
    """Returns this program's interpreter, and the folders in which it looks for modules."""
    return sys.executable or "python3", [os.path.abspath(folder) for folder in sys.path]


# --- Inside ------------------------------------------------------------------------------------

_processes = None


def _use():
    """Lets the processes of this program run functions that are sent after this call."""
    _core.use_python(*interpreter_and_path(), _processes or len(os.sched_getaffinity(0)))


def _row(leaf):
    if leaf.shape is None:
        raise ValueError("flat_map needs shapes of known rank in output_signature, but one has shape None")
    return spec.TensorSpec((None, *leaf.shape), leaf.dtype)


def _call(kind, args, output_signature):
    """Returns a description, for dataplane/python/child.py, of how leaves become arguments and results become leaves."""
    leaves = nest.leaves(output_signature)
    for leaf in leaves:
        if type(leaf) is not spec.TensorSpec:
            raise ValueError(f"output_signature must be a nest of TensorSpec, but contains {leaf!r}")
    return json.dumps(
        {
            "kind": kind,
            "input": _numbered(tuple(args)),
            "output": _numbered(output_signature),
            "dtypes": [as_dtype(leaf.dtype).name for leaf in leaves],
            "shapes": [leaf.shape for leaf in leaves],
            "python": sys.version_info[:2],
        }
    )


def _numbered(value):
    count = itertools.count()
    return _described(nest.map_leaves(lambda _: next(count), value))


def _described(value):
    if isinstance(value, dict):
        return ["d", [[key, _described(member)] for key, member in value.items()]]
    if nest.is_namedtuple(value):
        return ["n", type(value).__name__, value._fields, [_described(member) for member in value]]
    if isinstance(value, tuple):
        return ["t", [_described(member) for member in value]]
    return value


def _fits(signature, found):
    """Returns whether elements of the spec `found` match `signature`."""
    try:
        nest.assert_same(signature, found, "output_signature")
    except ValueError:
        return False
    return all(_leaf_fits(a, b) for a, b in zip(nest.leaves(signature), nest.leaves(found)))


def _leaf_fits(signature, found):
    if type(found) is not spec.TensorSpec or signature.dtype != found.dtype:
        return False
    if signature.shape is None:
        return True
    return (
        found.shape is not None
        and len(found.shape) == len(signature.shape)
        and all(a is None or a == b for a, b in zip(signature.shape, found.shape))
    )


def _inner(function):
    """Returns the function inside any number of functools.partial."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _name(function):
    function = _inner(function)
    kind = type(function)
    module = getattr(function, "__module__", None) or kind.__module__
    return f"{module}:{getattr(function, '__qualname__', kind.__qualname__)}"


def _ship(function, by_value):
    """Returns (name, pickled bytes). The bytes are empty for a function that can be imported by its name."""
    if not by_value and _is_importable(function):
        return _name(function), b""
    try:
        import cloudpickle
    except ImportError:
        raise TypeError(
            f"{_name(function)} must be sent by value, which needs the package cloudpickle; install it, or define the "
            "function in a module that the workers can import"
        ) from None
    module = sys.modules.get(getattr(_inner(function), "__module__", None)) if by_value else None
    its_own = module is not None and module.__name__ in cloudpickle.list_registry_pickle_by_value()
    if module is not None and module.__name__ != "__main__" and not its_own:
        cloudpickle.register_pickle_by_value(module)
    else:
        module = None
    try:
        pickle = cloudpickle.dumps(function)
    except Exception as error:
        raise TypeError(f"{_name(function)} cannot be sent by value: {error}") from error
    finally:
        if module is not None:
            cloudpickle.unregister_pickle_by_value(module)
    if len(pickle) > MOST_BYTES:
        raise ValueError(
            f"{_name(function)} takes {len(pickle) >> 20} MiB with everything that it refers to; the limit is "
            f"{MOST_BYTES >> 20} MiB. Read large data inside the function instead"
        )
    return _name(function), pickle


def _is_importable(function):
    module, qualname = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module in (None, "__main__") or qualname is None:
        return False
    found = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return function in (found, getattr(found, "__penstock_function__", None))
