# SPDX-License-Identifier: Apache-2.0
"""Finds clock readings and random draws in a traced function. It is called once, so each is a constant for all elements."""

import contextlib
import datetime
import os
import pickle
import random
import sys
import time
import warnings

import numpy as np

from . import errors

_CLOCKS = {
    function
    for name in dir(time)
    if name.startswith(("time", "monotonic", "perf_counter", "process_time")) and callable(function := getattr(time, name))
}
_NOW = {"now", "utcnow", "today"}
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


@contextlib.contextmanager
def noticed(function):
    """Warns of such calls inside the context. If it ends with an exception, `function` was not traced, so nothing is
    reported."""
    found = {}  # in order of discovery
    generators = _generators(function)
    before = [_state(generator) for generator in generators]
    watches = sys.getprofile() is None  # else another profiler is active and must not be disturbed
    if watches:
        sys.setprofile(lambda frame, event, call: event == "c_call" and _note(call, found))
    try:
        yield
    finally:
        if watches:
            sys.setprofile(None)
    if any(_state(generator) != state for generator, state in zip(generators, before)):
        found["a NumPy random generator"] = True
    if found:
        warnings.warn(
            f"{getattr(function, '__qualname__', function)!s} called {', '.join(found)} while it was traced. It is "
            "traced only once, so the result is one constant for all elements. Use ps.ops.random_uniform or a similar "
            "operation, which draws for each element, or ps.py_function(function, output_signature=…), which runs for "
            "each",
            errors.VolatileCallWarning,
            stacklevel=_outside(),
        )


def _note(call, found):
    of = getattr(call, "__self__", None)
    if call in _CLOCKS:
        found[f"time.{call.__name__}()"] = True
    elif isinstance(of, type) and issubclass(of, datetime.date) and call.__name__ in _NOW:
        found[f"{of.__name__}.{call.__name__}()"] = True
    elif isinstance(of, random.Random):
        found["a function of the module random"] = True
    elif call is os.urandom:
        found["os.urandom()"] = True


def _generators(function):
    """Returns the NumPy generators from which the function may draw: the global one, and those that it refers to."""
    refers = [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if _is_set(cell)]
    of_module = getattr(function, "__globals__", {})
    names = getattr(getattr(function, "__code__", None), "co_names", ())
    refers += [of_module[name] for name in names if name in of_module]
    return [np.random.mtrand._rand] + [
        one for one in refers if isinstance(one, (np.random.Generator, np.random.RandomState))
    ]


def _is_set(cell):
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True


def _state(generator):
    """Returns the generator's state as bytes, for comparison."""
    if isinstance(generator, np.random.RandomState):
        return pickle.dumps(generator.get_state(legacy=False))
    return pickle.dumps(generator.bit_generator.state)


def _outside():
    """Returns the stack level of the first caller outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and (
        frame.f_code.co_filename.startswith(_HERE) or frame.f_code.co_filename == contextlib.__file__
    ):
        level, frame = level + 1, frame.f_back
    return level
