# SPDX-License-Identifier: Apache-2.0
"""What to read: an immutable graph of sources and transforms, with tf.data's names and arguments.

Building one reads no data. A mistake (a dtype, a shape, an argument) is an errors.InvalidArgumentError, a ValueError,
where it is made, naming node and argument. Functions are traced (docs/python.md).
"""

import os

from . import _core, expr, functions, nest, spec, values
from .iterator import Iterator, NumpyIterator, element_packer

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2
SHARD_HINT = -1


class Options:
    """How a dataset runs, as tf.data.Options: what is left at None is as it would be without.

    deterministic: False lets partitions merge in any order. threading.private_threadpool_size: how many threads of
    the process's pool it may use.
    """

    class _Threading:
        def __init__(self):
            self.private_threadpool_size = None

    def __init__(self):
        self.deterministic = None
        self.threading = self._Threading()


class Dataset:
    """A dataset. Made by the class methods here and by the file datasets; `for element in dataset` reads it."""

    def __init__(self, core, like=None):
        self._core = core
        self._spec = nest.as_like(like, _specs(core.spec))

    # --- Sources ----------------------------------------------------------------------

    @staticmethod
    def range(*args, output_type="int64", name=None):
        """int64 scalars: range(stop), range(start, stop), range(start, stop, step)."""
        if len(args) == 1 and isinstance(args[0], expr.Expr):
            dataset = Dataset(_core.Dataset.range_of(args[0]))
        elif 1 <= len(args) <= 3:
            start, stop, step = (0, *args, 1)[-3:] if len(args) == 1 else (*args, 1)[:3]
            dataset = Dataset(_core.Dataset.range(int(start), int(stop), int(step)))
        else:
            raise ValueError(f"range takes 1 to 3 numbers, not {len(args)}")
        if dataset.element_spec.dtype == output_type:
            return dataset
        return dataset.map(lambda x: x.astype(output_type))

    @staticmethod
    def counter(start=0, step=1, dtype="int64", name=None):
        """start, start + step, … without an end that is ever reached."""
        limit = 2**63 - 1 if step > 0 else -(2**63)
        return Dataset.range(start, limit, step, output_type=dtype)

    @staticmethod
    def from_tensors(tensors, name=None):
        """One element: this nest of arrays. A window, in `group_by_window`, is left to the `flat_map` behind it."""
        if isinstance(tensors, Dataset):
            return OneWindow(tensors)
        return _from(tensors, _core.Dataset.from_tensors, _core.Dataset.tensors_of)

    @staticmethod
    def from_tensor_slices(tensors, name=None):
        """An element for each row of this nest of arrays."""
        return _from(tensors, _core.Dataset.from_tensor_slices, _core.Dataset.tensor_slices_of)

    @staticmethod
    def from_generator(
        generator,
        output_types=None,
        output_shapes=None,
        args=None,
        output_signature=None,
        name=None,
        deterministic=True,
        version=None,
        by_value=False,
    ):
        """What generator(*args) yields, in a Python process. It is called anew for each pass, and to go back to a
        position, where as many elements are passed over: so it must yield the same each time, or say
        deterministic=False. One split: of the workers that share a pass one has it."""
        if not callable(generator):
            raise TypeError("from_generator takes a function that gives an iterator, as a generator function does")
        if output_signature is None:
            if output_types is None:
                raise ValueError("from_generator needs an output_signature, or output_types")
            output_signature = _signature(output_types, output_shapes)
        if args:
            generator = functions.applied(generator, args)
        sent = functions.PyFunction(generator, output_signature, deterministic, version, by_value)
        return Dataset(sent.generator(), output_signature)

    @staticmethod
    def list_files(file_pattern, shuffle=None, seed=None, name=None):
        """File names that match a pattern or several; shuffled anew in each repetition unless `shuffle` is False.
        errors.NotFoundError, when reading starts, if nothing matches."""
        return Dataset(_core.Dataset.list_files(file_names(file_pattern), shuffle is None or bool(shuffle), seed))

    @staticmethod
    def zip(*args, datasets=None, name=None):
        """Tuples, or a nest, of one element of each dataset; ends with the shortest."""
        if datasets is not None:
            args = (datasets,)
        given = args[0] if len(args) == 1 and nest.is_nest(args[0]) else tuple(args)
        if not nest.leaves(given) or not all(isinstance(leaf, Dataset) for leaf in nest.leaves(given)):
            raise TypeError(f"zip takes datasets, or a nest of them, not {given!r}")
        zipped = Dataset(
            _core.Dataset.zip([leaf._core for leaf in nest.leaves(given)]),
            tuple(leaf.element_spec for leaf in nest.leaves(given)),
        )
        if type(given) is tuple and not any(map(nest.is_nest, given)):
            return zipped
        pack = nest.packer(given)
        return zipped.map(lambda *members: pack(members))

    @staticmethod
    def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True):
        """An element of one of `datasets` for each int64 of `choice_dataset`, its index there."""
        return Dataset(
            _core.Dataset.choose_from_datasets(
                [dataset._core for dataset in datasets], choice_dataset._core, stop_on_empty_dataset
            ),
            datasets[0].element_spec if datasets else None,
        )

    @staticmethod
    def sample_from_datasets(
        datasets, weights=None, seed=None, stop_on_empty_dataset=False, rerandomize_each_iteration=None
    ):
        """Elements of `datasets`, drawn by weight (all alike if not given)."""
        return Dataset(
            _core.Dataset.sample_from_datasets(
                [dataset._core for dataset in datasets],
                [] if weights is None else [float(weight) for weight in weights],
                seed,
                stop_on_empty_dataset,
                bool(rerandomize_each_iteration),
            ),
            datasets[0].element_spec if datasets else None,
        )

    # --- Element by element -------------------------------------------------------------

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
        """map_func(element) for each. Elements that are tuples are its arguments, one by one. With an output_signature
        (a nest of TensorSpec) a function that cannot be traced is run in Python processes, as `ps.py_function` is."""

        def build(function):
            result = []
            core = self._core.map(expr.traced(function, self._spec, result), _calls(num_parallel_calls))
            return Dataset(core, result[0])

        return functions.traced_or_sent(build, map_func, output_signature)

    def filter(self, predicate, name=None):
        """The elements for which the scalar bool is true. What cannot be traced is run in Python processes."""
        return self._chosen(self._core.filter, predicate)

    def take_while(self, predicate, name=None):
        """The elements before the first for which the scalar bool is false."""
        return self._chosen(self._core.take_while, predicate)

    def scan(self, initial_state, scan_func, name=None):
        """Outputs of scan_func(state, element) -> (new state, output)."""
        result = []

        def step(state, element):
            pair = scan_func(
                expr.nest_of(state, initial_state), expr.nest_of(element, self._spec)
            )
            result.append(pair[1])
            return expr.as_expr(tuple(pair))

        return Dataset(self._core.scan(_state(initial_state), step), result[-1] if result else None)

    def flat_map(self, map_func, name=None, output_signature=None):
        """The elements of the dataset that map_func gives for each element, one dataset after the other. A function
        that is run in Python (`ps.py_function`, or with an output_signature what cannot be traced) gives an iterable
        of elements, of one shape for each input."""

        def build(function):
            if isinstance(function, functions.PyFunction):
                return self.map(function.rows).unbatch()
            result = []
            return Dataset(self._core.flat_map(self._traced_dataset(function, result)), result[0])

        return functions.traced_or_sent(build, map_func, output_signature)

    def interleave(
        self, map_func, cycle_length=None, block_length=None, num_parallel_calls=None, deterministic=None, name=None
    ):
        """The same of `cycle_length` datasets at a time, `block_length` elements of each in turn."""
        result = []
        core = self._core.interleave(
            self._traced_dataset(map_func, result),
            8 if cycle_length in (None, AUTOTUNE) else cycle_length,
            1 if block_length is None else block_length,
        )
        return Dataset(core, result[0])

    def enumerate(self, start=0, name=None):
        """(int64 number, element)."""
        return Dataset(self._core.enumerate(start), (None, self._spec))

    def ignore_errors(self, log_warning=False, max=None, name=None):
        """Passes over errors that lie in the data, each counted; at most `max` of them."""
        return self._alike(self._core.ignore_errors(max, log_warning))

    def parse_example(self, features):
        """Dicts out of serialised tf.train.Examples; `features`: a TensorSpec for each."""
        leaves = {key: feature._leaf for key, feature in features.items()}
        return self.map(lambda x: _core.ops.parse_example(x, leaves))

    # --- Several elements in one, and one in several ----------------------------------------

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None, name=None):
        """Stacks of `batch_size` elements."""
        return self._alike(self._core.batch(batch_size, drop_remainder))

    def ragged_batch(self, batch_size, drop_remainder=False, row_splits_dtype="int64", name=None):
        """Batches of tensors whose shapes differ, as ragged tensors."""
        return self._alike(self._core.ragged_batch(batch_size, drop_remainder))

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None):
        """Batches of tensors whose shapes differ, padded: to the shapes given, None or -1 in them to the longest."""
        return self._alike(
            self._core.padded_batch(
                batch_size, self._shapes(padded_shapes), self._paddings(padding_values), drop_remainder
            )
        )

    def unbatch(self, name=None):
        """The rows of each element, one after the other."""
        return self._alike(self._core.unbatch())

    def rebatch(self, batch_size, drop_remainder=False, name=None):
        """Batches of another size, or of sizes that take turns."""
        sizes = [batch_size] if isinstance(batch_size, int) else [int(size) for size in batch_size]
        return self._alike(self._core.rebatch(sizes, drop_remainder))

    def bucket_by_sequence_length(
        self,
        element_length_func,
        bucket_boundaries,
        bucket_batch_sizes,
        padded_shapes=None,
        padding_values=None,
        pad_to_bucket_boundary=False,
        no_padding=False,
        drop_remainder=False,
        name=None,
        max_age=None,
    ):
        """Batches of elements of like length, padded (ragged with `no_padding`)."""
        return self._alike(
            self._core.bucket_by_sequence_length(
                expr.traced(element_length_func, self._spec, []),
                list(bucket_boundaries),
                list(bucket_batch_sizes),
                self._shapes(padded_shapes),
                self._paddings(padding_values),
                pad_to_bucket_boundary,
                no_padding,
                drop_remainder,
                max_age,
            )
        )

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
        """Windows of `size` elements, which may overlap; its methods say what a window becomes."""
        return WindowedDataset(self._core.window(size, shift, stride, drop_remainder), self)

    def group_by_window(self, key_func, reduce_func, window_size=None, window_size_func=None, name=None, max_age=None):
        """Windows of elements with one key, each made a dataset by reduce_func(key, window). The key that it gets is
        None: a window's elements are at hand, its key is not."""
        if window_size is None:
            raise ValueError("group_by_window needs a window_size, one for all keys")
        core = self._core.group_by_window(expr.traced(key_func, self._spec, []), window_size, max_age)
        windows = WindowedDataset(core, self)
        whole = []

        def reduce(window):
            inner = reduce_func(None, window)
            whole.append(isinstance(inner, OneWindow))
            return inner.window if whole[-1] else inner

        flat = windows.flat_map(reduce)
        return WindowsToFlatten(windows, reduce) if whole[0] else flat

    def rounds(self, num_consumers, bucket=None, cost=None, cost_spread=0.05, max_age=None):
        """The same elements in rounds of one bucket or of about one cost, for coordinated reads; stands last before
        `distribute`."""
        functions = [None if f is None else expr.traced(f, self._spec, []) for f in (bucket, cost)]
        return self._alike(self._core.rounds(num_consumers, *functions, cost_spread, max_age))

    # --- Order, part and repetition ------------------------------------------------------------

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=None, name=None):
        """In an order drawn with a buffer of `buffer_size` elements."""
        return self._alike(self._core.shuffle(buffer_size, seed, reshuffle_each_iteration in (None, True)))

    def repeat(self, count=None, name=None):
        """`count` times; for ever if None or -1."""
        return self._alike(self._core.repeat(-1 if count is None else count))

    def take(self, count, name=None):
        """The first `count` elements; all of them if -1."""
        return self if count == -1 else self._alike(self._core.take(count))

    def skip(self, count, name=None):
        """Without the first `count` elements."""
        return self._alike(self._core.skip(count))

    def shard(self, num_shards, index, name=None):
        """Every `num_shards`-th element, from number `index` on."""
        return self._alike(self._core.shard(num_shards, index))

    def concatenate(self, dataset, name=None):
        """These elements, then those of `dataset`."""
        return self._alike(self._core.concatenate(dataset._core))

    # --- Running ------------------------------------------------------------------------------

    def prefetch(self, buffer_size, name=None):
        """Reads ahead, on a thread of its own."""
        return self._alike(self._core.prefetch(buffer_size))

    def cache(self, filename="", name=None):
        """Reads the input once, and repetitions behind that from memory, or from the file of that name."""
        return self._alike(self._core.cache(os.fspath(filename)))

    def with_options(self, options, name=None):
        """As `options` says."""
        return self._alike(
            self._core.with_options(options.deterministic, options.threading.private_threadpool_size)
        )

    def options(self):
        """New options, with nothing set."""
        return Options()

    def apply(self, transformation_func):
        """transformation_func(self), so that a function from dataset to dataset stands in a chain."""
        return transformation_func(self)

    def distribute(self, processing_mode, service, **options):
        """What stands before runs on the workers of `service`, what stands after in this process. `options`: the
        fields of DistributeOptions (include/penstock/distribute.h), for what `data.service.distribute` has no
        argument for."""
        from .data import service as of_service

        return self._alike(self._core.distribute(of_service._options(processing_mode, service, **options)))

    # --- Reading ------------------------------------------------------------------------------

    def __iter__(self):
        return Iterator(self)

    def iterator(self, seed=None):
        """An Iterator; `seed` is for what the dataset leaves open."""
        return Iterator(self, seed)

    def as_numpy_iterator(self):
        """Elements as NumPy arrays and scalars."""
        return NumpyIterator(Iterator(self))

    def reduce(self, initial_state, reduce_func, name=None):
        """Reads everything: the last state, which begins as `initial_state`; reduce_func(state, element) gives the
        new one."""
        like = initial_state if nest.is_nest(initial_state) else None

        def step(state, element):
            state = expr.nest_of(state, initial_state)
            element = expr.nest_of(element, self._spec)
            # As tf.data: an element that is a tuple stays one.
            return expr.as_expr(reduce_func(state, element))

        leaves = self._core.reduce(_state(initial_state), step)
        return nest.packer(like)(leaves)

    def get_single_element(self, name=None):
        """The one element; errors.InvalidArgumentError if there are none or more."""
        from . import errors

        elements = list(self.take(2))
        if len(elements) != 1:
            raise errors.InvalidArgumentError(
                "get_single_element: the dataset has " + ("no element" if not elements else "more than one")
            )
        return elements[0]

    # --- Questions ------------------------------------------------------------------------------

    @property
    def element_spec(self):
        """A nest of TensorSpec, RaggedTensorSpec, SparseTensorSpec and OptionalSpec."""
        return self._spec

    def cardinality(self, name=None):
        """How many elements there are, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
        return self._core.cardinality

    def __len__(self):
        count = self.cardinality()
        if count == INFINITE_CARDINALITY:
            raise TypeError("the dataset is infinite")
        if count == UNKNOWN_CARDINALITY:
            raise TypeError("the dataset's length is unknown before it is read")
        return count

    def __bool__(self):
        return True

    @property
    def fingerprint(self):
        """Equal for equal definitions, on every machine."""
        return self._core.fingerprint

    def explain(self):
        """The tree of nodes, with specs."""
        return self._core.explain()

    def __repr__(self):
        return self.explain().rstrip("\n")

    # --- Inside ---------------------------------------------------------------------------------

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

    def _alike(self, core):
        return Dataset(core, self._spec)

    def _traced_dataset(self, function, result):
        def call(element):
            element = expr.nest_of(element, self._spec)
            inner = function(*element) if type(element) is tuple else function(element)
            if not isinstance(inner, Dataset):
                raise TypeError(f"the function of flat_map and interleave gives a dataset, not {type(inner).__name__}")
            result.append(inner.element_spec)
            return inner._core

        return call

    def _named(self, nested, what, is_leaf):
        """[(name of the leaf, value)] of a nest with one value for each leaf; one value alone is for all."""
        names = self._core.leaf_names
        if nested is None:
            return []
        if is_leaf(nested):
            given = [nested] * len(names)
        else:
            given = _leaves_to(self._spec, nested, what)
        return [(name, value) for name, value in zip(names, given) if value is not None]

    def _shapes(self, shapes):
        if shapes is None:
            return []
        given = [shapes] if not nest.is_nest(self._spec) else _leaves_to(self._spec, shapes, "padded_shapes")
        return [
            (name, [-1 if dim is None else dim for dim in shape])
            for name, shape in zip(self._core.leaf_names, given)
            if shape is not None
        ]

    def _paddings(self, paddings):
        named = self._named(paddings, "padding_values", lambda value: not nest.is_nest(value))
        return [(name, value.item() if hasattr(value, "item") else value) for name, value in named]


class WindowedDataset:
    """Windows that are still to become elements: `dataset.window(5, shift=1).flat_map(lambda w: w.batch(5))`, or
    `.batch()`."""

    def __init__(self, core, of):
        self._core = core
        self._of = of

    def flat_map(self, map_func, name=None):
        """What map_func makes of each window, a dataset of its elements, one after the other."""
        result = []

        def call(window):
            inner = map_func(Dataset(window, self._of.element_spec))
            if not isinstance(inner, Dataset):
                raise TypeError(f"the function of flat_map gives a dataset, not {type(inner).__name__}")
            result.append(inner.element_spec)
            return inner._core

        return Dataset(self._core.flat_map(call), result[0])

    def batch(self):
        """Each window as one element: its elements stacked."""
        return self._of._alike(self._core.batch())

    def padded_batch(self, padded_shapes=None, padding_values=None):
        """The same, padded."""
        return self._of._alike(
            self._core.padded_batch(self._of._shapes(padded_shapes), self._of._paddings(padding_values))
        )

    def ragged_batch(self):
        """The same, as ragged tensors."""
        return self._of._alike(self._core.ragged_batch())


class OneWindow:
    """tf.data's dataset of one element which is a window: `lambda key, window: Dataset.from_tensors(window)`."""

    def __init__(self, window):
        self.window = window


class WindowsToFlatten:
    """What `group_by_window` gives then: `flat_map(lambda window: window)` stands behind it."""

    def __init__(self, windows, reduce):
        self._windows = windows
        self._reduce = reduce

    def flat_map(self, map_func, name=None):
        """What map_func makes of each window, one after the other."""
        return self._windows.flat_map(lambda window: map_func(self._reduce(window)))


# --- Inside ------------------------------------------------------------------------------------


def file_names(given):
    if isinstance(given, (str, bytes, os.PathLike)):
        given = [given]
    return [os.fsdecode(name) for name in given]


def _signature(output_types, output_shapes):
    if output_shapes is None:
        return nest.map_leaves(lambda dtype: spec.TensorSpec(None, dtype), output_types)
    shapes = iter(_leaves_to(output_types, output_shapes, "output_shapes"))
    return nest.map_leaves(lambda dtype: spec.TensorSpec(next(shapes), dtype), output_types)


def _calls(num_parallel_calls):
    return AUTOTUNE if num_parallel_calls is None else num_parallel_calls


def _from(tensors, of_values, of_expr):
    tensors = _lists_made_tensors(tensors)
    if any(isinstance(leaf, expr.Expr) for leaf in nest.leaves(tensors)):
        traced = expr.as_expr(tensors)
        return Dataset(of_expr(traced), tensors)
    flat = []

    def leaf_spec(value):
        dtype, shape, data = values.given(value)
        flat.append((dtype, list(shape), data))
        return _core.LeafSpec(shape, dtype)

    plain = nest.plain(nest.map_leaves(leaf_spec, tensors))
    return Dataset(of_values(flat, plain), tensors)


def _lists_made_tensors(tensors):
    """A list is one tensor, as in tf.data; one of traced values is stacked."""
    return nest.map_leaves(lambda leaf: expr.as_expr(leaf) if expr._has_expr(leaf) else leaf, tensors)


def _state(initial_state):
    """The constants of a state, with the dtypes that tensors of them have."""
    return expr.as_expr(nest.map_leaves(_constant, initial_state))


def _constant(value):
    dtype, shape, data = values.given(value)
    return _core.constant(dtype, list(shape), data)


def _leaves_to(like, nested, what):
    """The values of `nested` at the leaves of `like`, in their order; what stands at a leaf may be a nest itself."""
    if isinstance(like, dict):
        if not isinstance(nested, dict) or nested.keys() != like.keys():
            raise ValueError(f"{what} has not the keys of the elements, {sorted(like)}: {nested!r}")
        return [value for key in sorted(like) for value in _leaves_to(like[key], nested[key], what)]
    if isinstance(like, tuple):
        if not isinstance(nested, tuple) or len(nested) != len(like):
            raise ValueError(f"{what} is not a tuple of {len(like)} as the elements are: {nested!r}")
        return [value for a, b in zip(like, nested) for value in _leaves_to(a, b, what)]
    return [nested]


def _specs(core_spec):
    return nest.map_leaves(spec.of_leaf, core_spec)
