# SPDX-License-Identifier: Apache-2.0
"""Transforms that apply a function to one element at a time."""

from . import _core, expr, functions, nest, spec, values

AUTOTUNE = -1


class Mapping:
    """The part of Dataset that maps, selects and flattens."""

    def map(
        self,
        map_func,
        num_parallel_calls=None,
        deterministic=None,
        synchronous=None,
        use_unbounded_threadpool=False,
        name=None,
        output_signature=None,
    ):
        """Applies map_func to each element. If elements are tuples, their members are passed as separate arguments. With
        an output_signature (a nest of TensorSpec), a function that cannot be traced runs in Python processes, like
        `ps.py_function`."""

        def build(function):
            result = []
            core = self._core.map(expr.traced(function, self._spec, result), _calls(num_parallel_calls))
            return self._made(core, result[0])

        return functions.traced_or_sent(build, map_func, output_signature)

    def filter(self, predicate, name=None):
        """Produces the elements for which the predicate, a scalar bool, is true. A predicate that cannot be traced runs
        in Python processes."""
        return self._chosen(self._core.filter, predicate)

    def take_while(self, predicate, name=None):
        """Produces the elements before the first one for which the predicate, a scalar bool, is false."""
        return self._chosen(self._core.take_while, predicate)

    def scan(self, initial_state, scan_func, name=None):
        """Produces the outputs of scan_func(state, element) -> (new state, output)."""
        result = []

        def step(state, element):
            with expr.tracing(scan_func):
                pair = scan_func(expr.nest_of(state, initial_state), expr.nest_of(element, self._spec))
            result.append(pair[1])
            return expr.as_expr(tuple(pair))

        return self._made(self._core.scan(_state(initial_state), step), result[-1] if result else None)

    def flat_map(self, map_func, name=None, output_signature=None):
        """Produces the elements of the dataset that map_func returns for each element, one dataset after the other. A
        function that runs in Python (`ps.py_function`, or an untraceable one with an output_signature) returns an
        iterable of elements, which must all have the same shape for one input."""

        def build(function):
            if isinstance(function, functions.PyFunction):
                return self.map(function.rows).unbatch()
            result = []
            return self._made(self._core.flat_map(self._traced_dataset(function, result)), result[0])

        return functions.traced_or_sent(build, map_func, output_signature)

    def interleave(
        self, map_func, cycle_length=None, block_length=None, num_parallel_calls=None, deterministic=None, name=None
    ):
        """Like `flat_map`, but reads `cycle_length` datasets at a time, `block_length` elements of each in turn."""
        result = []
        try:
            core = self._core.interleave(
                self._traced_dataset(map_func, result),
                8 if cycle_length in (None, AUTOTUNE) else cycle_length,
                1 if block_length is None else block_length,
            )
        except expr.Untraceable as error:
            raise expr.Untraceable(f"interleave cannot run a function in Python, only trace it; {_WAYS_OUT}") from error
        return self._made(core, result[0])

    def enumerate(self, start=0, name=None):
        """Produces (number, element), with int64 numbers."""
        return self._made(self._core.enumerate(start), (None, self._spec))

    def ignore_errors(self, log_warning=False, max=None, name=None):
        """Skips elements whose data causes an error, and counts them. At most `max` are skipped."""
        return self._alike(self._core.ignore_errors(max, log_warning))

    def parse_example(self, features):
        """Produces dicts parsed from serialised tf.train.Examples. `features`: a TensorSpec for each feature."""
        leaves = {key: feature._leaf for key, feature in features.items()}
        return self.map(lambda x: _core.ops.parse_example(x, leaves))

    def _chosen(self, choose, predicate):
        def build(function):
            return self._alike(choose(expr.traced(function, self._spec, [])))

        holds = spec.TensorSpec((), "bool")
        if isinstance(predicate, functions.PyFunction):
            return build(predicate.with_signature(holds))
        try:
            return build(predicate)
        except expr.Untraceable:
            return build(functions.PyFunction(predicate, holds))

    def _traced_dataset(self, function, result):
        def call(element):
            element = expr.nest_of(element, self._spec)
            with expr.tracing(function):
                inner = function(*element) if type(element) is tuple else function(element)
            if not isinstance(inner, type(self)):
                raise TypeError(
                    "the function of flat_map or interleave must return a dataset (for tensors: "
                    f"Dataset.from_tensor_slices), not {type(inner).__name__}; {_WAYS_OUT}"
                )
            result.append(inner.element_spec)
            return inner._core

        return call


_WAYS_OUT = (
    "compute what needs Python in a map before it (output_signature=…), or yield the elements in a flat_map with an "
    "output_signature, which runs in Python; use ps.ops.where for a choice that can be traced"
)

# --- Inside ------------------------------------------------------------------------------------


def _calls(num_parallel_calls):
    return AUTOTUNE if num_parallel_calls is None else num_parallel_calls


def _state(initial_state):
    """Returns the constants of a state as tensors, with the dtypes that they get."""
    return expr.as_expr(nest.map_leaves(_constant, initial_state))


def _constant(value):
    dtype, shape, data = values.given(value)
    return _core.constant(dtype, list(shape), data)
