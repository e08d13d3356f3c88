# SPDX-License-Identifier: Apache-2.0
"""Datasets: immutable graphs of sources and transforms, with tf.data's names and arguments.

Building a dataset reads no data. A mistake (a dtype, a shape, an argument) raises errors.InvalidArgumentError, which is
a ValueError, in the call that makes it. The error names the node and the argument. Functions are traced
(docs/python.md).
"""

import os

from . import _core, expr, mapping, nest, spec
from .batching import Batching
from .iterator import Iterator, NumpyIterator
from .mapping import AUTOTUNE, Mapping  # noqa: F401
from .options import Options
from .sources import Sources

INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2
SHARD_HINT = -1


class Dataset(Sources, Mapping, Batching):
    """A dataset. The class methods here and the file datasets create it; `for element in dataset` reads it."""

    def __init__(self, core, like=None, options=None):
        self._core = core
        self._spec = nest.as_like(like, _specs(core.spec))
        self._options = options or Options()

    # --- Order, part and repetition ------------------------------------------------------------

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=None, name=None):
        """Produces the elements in an order drawn with a buffer of `buffer_size` elements."""
        return self._alike(self._core.shuffle(buffer_size, seed, reshuffle_each_iteration in (None, True)))

    def repeat(self, count=None, name=None):
        """Repeats the dataset `count` times; for ever if None or -1."""
        return self._alike(self._core.repeat(-1 if count is None else count))

    def take(self, count, name=None):
        """Produces the first `count` elements; all of them if -1."""
        return self if count == -1 else self._alike(self._core.take(count))

    def skip(self, count, name=None):
        """Skips the first `count` elements."""
        return self._alike(self._core.skip(count))

    def shard(self, num_shards, index, name=None):
        """Produces every `num_shards`-th element, starting with element `index`."""
        return self._alike(self._core.shard(num_shards, index))

    def concatenate(self, dataset, name=None):
        """Produces these elements, then the elements of `dataset`."""
        return self._alike(self._core.concatenate(dataset._core))

    # --- Running ------------------------------------------------------------------------------

    def prefetch(self, buffer_size, name=None):
        """Reads ahead on a thread of its own."""
        return self._alike(self._core.prefetch(buffer_size))

    def cache(self, filename="", name=None):
        """Reads the input once. Later repetitions come from memory, or from the file of that name."""
        return self._alike(self._core.cache(os.fspath(filename)))

    def with_options(self, options, name=None):
        """Sets the options in `options`. Options with the value None keep their earlier value."""
        core = self._core.with_options(options.deterministic, options.threading.private_threadpool_size)
        return Dataset(core, self._spec, self._options.merge(options))

    def options(self):
        """The options that `with_options` set before this node."""
        return Options().merge(self._options)

    def apply(self, transformation_func):
        """Returns transformation_func(self), so that a function from dataset to dataset can be part of a chain."""
        return transformation_func(self)

    def distribute(
        self,
        processing_mode,
        service,
        *,
        job_name=None,
        run_id=None,
        ack_mode=None,
        order=None,
        partitions=None,
        visitation=None,
        early_end=None,
        consumer_index=None,
        num_consumers=None,
        remainder_policy=None,
        on_error=None,
        group_size=None,
        group_member=None,
        trainer_id=None,
        cross_trainer_cache=None,
        target_workers="AUTO",
        max_outstanding_requests=None,
        max_outstanding_bytes=None,
        max_bytes_in_flight=None,
        max_permits=None,
        weight=None,
        priority=None,
        data_transfer_protocol=None,
        fallback=None,
        compression=None,
        namespace=None,
        task_refresh_interval_hint_ms=None,
        timeout=None,
        seed=None,
        **moved,
    ):
        """Runs the nodes before it on the workers of `service`; nodes after it run in this process. The arguments are
        the fields of DistributeOptions (include/penstock/distribute.h); None means the default. Enumerations of
        `data.service` may be given by name: ack_mode="ON_COMMIT"."""
        from .data import service as of_service

        options = {name: value for name, value in locals().items() if name not in ("self", "moved", "of_service")}
        return self._alike(self._core.distribute(of_service._options(**options, **moved)))

    # --- Reading ------------------------------------------------------------------------------

    def __iter__(self):
        return Iterator(self)

    def iterator(self, seed=None):
        """Returns an Iterator. `seed` applies to all nodes for which the dataset sets no seed. The order then does not
        depend on earlier reads."""
        return Iterator(self, seed, None if seed is None else 0)

    def as_numpy_iterator(self):
        """Yields the elements as NumPy arrays and scalars."""
        return NumpyIterator(Iterator(self))

    def reduce(self, initial_state, reduce_func, name=None):
        """Reads everything and returns the last state. The first state is `initial_state`; reduce_func(state, element)
        returns the next one."""
        like = initial_state if nest.is_nest(initial_state) else None

        def step(state, element):
            state = expr.nest_of(state, initial_state)
            element = expr.nest_of(element, self._spec)
            # As in tf.data, an element that is a tuple is passed as one tuple.
            with expr.tracing(reduce_func):
                return expr.as_expr(reduce_func(state, element))

        leaves = self._core.reduce(mapping._state(initial_state), step)
        return nest.packer(like)(leaves)

    def get_single_element(self, name=None):
        """Returns the only element. Raises errors.InvalidArgumentError unless there is exactly one."""
        from . import errors

        elements = list(self.take(2))
        if len(elements) != 1:
            raise errors.InvalidArgumentError(
                "get_single_element: the dataset must have one element, but has " + ("none" if not elements else "more")
            )
        return elements[0]

    # --- Questions ------------------------------------------------------------------------------

    @property
    def element_spec(self):
        """A nest of TensorSpec, RaggedTensorSpec, SparseTensorSpec and OptionalSpec."""
        return self._spec

    def cardinality(self, name=None):
        """Returns the number of elements, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
        return self._core.cardinality

    def __len__(self):
        count = self.cardinality()
        if count == INFINITE_CARDINALITY:
            raise TypeError("the dataset is infinite, so it has no length")
        if count == UNKNOWN_CARDINALITY:
            raise TypeError("the length of the dataset is unknown until it is read")
        return count

    def __bool__(self):
        return True

    @property
    def fingerprint(self):
        """Returns a number that is equal for equal definitions, on every machine."""
        return self._core.fingerprint

    def explain(self):
        """Returns the tree of nodes, with specs."""
        return self._core.explain()

    def __repr__(self):
        return self.explain().rstrip("\n")

    # --- Inside ---------------------------------------------------------------------------------

    def _made(self, core, like):
        return Dataset(core, like, self._options)

    def _alike(self, core):
        return self._made(core, self._spec)

# --- Inside ------------------------------------------------------------------------------------


def _specs(core_spec):
    return nest.map_leaves(spec.of_leaf, core_spec)
