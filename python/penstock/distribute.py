# SPDX-License-Identifier: Apache-2.0
"""One dataset read by the replicas of a synchronous trainer, with the names of tf.distribute.

    strategy = MirroredStrategy(["CPU:0", "CPU:1"])
    for batch in strategy.experimental_distribute_dataset(ds.batch(256)):
        losses = strategy.run(train_step, args=(batch,))          # a PerReplica
        loss = strategy.reduce("MEAN", losses, axis=None)

Replicas that step together may be in several processes. A ReplicaGroup describes them. docs/replicas.md has the
rules.
"""

import concurrent.futures
import contextlib
import dataclasses
import os
import threading
import typing
import warnings

from . import _core, dataset as datasets, errors, expr, iterator, leaving, moved, nest, spec, tensor, values
from ._core import (  # noqa: F401
    AutoShardPolicy,
    InputContext,
    InputReplicationMode,
    PartialBatches,
    ReduceOp,
    ReplicaGroup,
)



def _of(devices=("CPU:0",), replicas_of_process=(), process=0, launch=""):
    """The name of `create` before 0.9."""
    moved.warn("ReplicaGroup.of", "ReplicaGroup.create")
    return ReplicaGroup.create(devices, replicas_of_process, process, launch)


def _launch(self):
    """The name of `launch_id` before 0.9."""
    moved.warn("ReplicaGroup.launch", "ReplicaGroup.launch_id")
    return self.launch_id


# Names before 0.9, until the next release.
ReplicaGroup.of = staticmethod(_of)
ReplicaGroup.launch = property(_launch)


@dataclasses.dataclass(frozen=True)
class InputOptions:
    """How a dataset becomes the replicas' input: tf.distribute's fields, then Penstock's own.

    experimental_fetch_to_device: whether the values of a replica on a GPU are copied to it; False leaves them in host
    memory. experimental_per_replica_buffer_size: number of batches made ahead. auto_shard_policy: how a dataset of this
    process is divided among the pipelines. partial_batches: what happens in a step in which some replicas have no data.
    steps: number of steps of one pass. replicas_per_element: number of consecutive replicas that get the same element.
    seed: seed of the passes.
    """

    experimental_fetch_to_device: bool = True
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1
    auto_shard_policy: AutoShardPolicy = AutoShardPolicy.AUTO
    partial_batches: PartialBatches = PartialBatches.EMPTY
    steps: typing.Optional[int] = None
    replicas_per_element: int = 1
    seed: typing.Optional[int] = None

    def __post_init__(self):
        if self.experimental_place_dataset_on_device:
            raise ValueError("experimental_place_dataset_on_device must be False, because datasets run on CPUs")


@dataclasses.dataclass(frozen=True)
class ValueContext:
    """The argument of a function of `experimental_distribute_values_from_function`."""

    replica_id_in_sync_group: int = 0
    num_replicas_in_sync: int = 1


@dataclasses.dataclass(frozen=True)
class ReplicaContext:
    """The replica for which `Strategy.run` calls a function."""

    strategy: "Strategy"
    replica_id_in_sync_group: int

    @property
    def num_replicas_in_sync(self):
        """Number of replicas in all processes."""
        return self.strategy.num_replicas_in_sync


_here = threading.local()


def get_replica_context():
    """Returns the ReplicaContext inside a function of `Strategy.run`, None elsewhere."""
    return getattr(_here, "context", None)


def in_cross_replica_context():
    """Returns whether this is outside all functions of `Strategy.run`."""
    return get_replica_context() is None


# --- Values and specs of each replica ----------------------------------------------------


class DistributedValues:
    """The values of the replicas of this process, in order. `values` has all of them; an index selects one."""

    def __init__(self, values):
        self.values = tuple(values)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, replica):
        return self.values[replica]

    def __repr__(self):
        lines = ",\n".join(f"  {i}: {value!r}" for i, value in enumerate(self.values))
        return f"{type(self).__name__}:{{\n{lines}\n}}"


class PerReplica(DistributedValues):
    """A leaf of the results of `DistributedIterator` and `Strategy.run`, if there are several replicas."""


class PerReplicaSpec:
    """The specs of the replicas' values at one leaf, one TypeSpec per replica."""

    def __init__(self, *value_specs):
        self.value_specs = tuple(value_specs)

    def is_compatible_with(self, spec_or_value):
        """Returns whether another PerReplicaSpec, or a PerReplica, fits this spec."""
        if isinstance(spec_or_value, PerReplicaSpec):
            others = spec_or_value.value_specs
        elif isinstance(spec_or_value, DistributedValues):
            others = spec_or_value.values
        else:
            return False
        return len(others) == len(self.value_specs) and all(
            own.is_compatible_with(other) for own, other in zip(self.value_specs, others)
        )

    def __eq__(self, other):
        return isinstance(other, PerReplicaSpec) and self.value_specs == other.value_specs

    def __hash__(self):
        return hash(self.value_specs)

    def __repr__(self):
        return f"PerReplicaSpec({', '.join(map(repr, self.value_specs))})"


class Optional:
    """The result of `get_next_as_optional`: a value, or none at the end."""

    def __init__(self, *value):
        self._value = value

    def has_value(self):
        """Returns whether there is a value."""
        return bool(self._value)

    def get_value(self):
        """Returns the value. Raises errors.InvalidArgumentError if there is none."""
        if not self._value:
            raise errors.InvalidArgumentError("this optional has no value, because the data has ended")
        return self._value[0]


# --- Reading ----------------------------------------------------------------------------


class DistributedDataset:
    """A dataset that the replicas read. A Strategy creates it. `for values in dataset` reads it from its start."""

    def __init__(self, core, like):
        self._core = core
        specs = [nest.as_like(like, datasets._specs(of_replica)) for of_replica in core.specs]
        self._spec = specs[0]  # of one replica's element
        self.element_spec = _per_replica(specs, lambda of_leaf: PerReplicaSpec(*of_leaf))

    def __iter__(self):
        return DistributedIterator(self)

    def map(self, map_func):
        """Applies map_func to each replica's element, after the distribution. map_func is traced, as in Dataset.map."""
        result = []
        core = self._core.map(expr.traced(map_func, self._spec, result))
        return DistributedDataset(core, result[0])

    def prefetch_to_device(self, depth):
        """Copies `depth` steps to each replica's device ahead of the current one."""
        return DistributedDataset(self._core.prefetch_to_device(depth), self._spec)

    def reduce(self, initial_state, reduce_func):
        """Reads everything and returns the last state. For each step, reduce_func(state, values) returns the next state.
        reduce_func is called, not traced."""
        state = initial_state
        for of_step in self:
            state = reduce_func(state, of_step)
        return state

    def cardinality(self):
        """Returns the number of elements of the dataset that was distributed."""
        return self._core.cardinality

    @property
    def steps(self):
        """The number of steps of one pass; UNKNOWN_CARDINALITY if it is not known before reading."""
        return self._core.steps

    def explain(self):
        """Returns the tree of nodes for each pipeline of this process."""
        return self._core.explain()


class DistributedIterator:
    """Yields each step's values: nests with PerReplica at the leaves, or the plain element of a single replica.

    Raises ValueError inside a function of `Strategy.run`, where each replica would advance it separately.
    """

    def __init__(self, dataset):
        self.element_spec = dataset.element_spec
        self.row_weights = None
        self._pack = iterator.element_packer(dataset._spec)
        self._core = dataset._core.make_iterator()
        leaving.stop_at_exit(leaving.READERS, self)

    def __iter__(self):
        return self

    def __next__(self):
        return self.next()

    def next(self, step=None):
        """Returns the next step's values; StopIteration at the end, which comes at the same step for all replicas.

        `step`: checks that the data is at this step of the trainer (errors.OutOfRangeError). Afterwards `row_weights`
        is None, or a PerReplica with the weight of each row (PartialBatches.PAD), for `Strategy.reduce`.
        """
        if not in_cross_replica_context():
            raise ValueError(
                "next(iterator) was called inside a function of Strategy.run, where each replica would advance it "
                "separately; call it outside and pass the values as arguments"
            )
        given = self._core.next(step)
        if given is None:
            raise StopIteration
        leaves, weights = given
        self.row_weights = PerReplica(weights) if any(weights) else None
        return _per_replica([self._pack(of_replica) for of_replica in leaves])

    def get_next(self):
        """Same as `next`, but raises errors.OutOfRangeError at the end."""
        try:
            return self.next()
        except StopIteration:
            raise errors.OutOfRangeError("End of sequence") from None

    def get_next_as_optional(self):
        """Returns the next step's values as an Optional, which is empty at the end."""
        try:
            return Optional(self.next())
        except StopIteration:
            return Optional()

    def landing_stats(self):
        """The name of `copy_stats` before 0.9."""
        moved.warn("landing_stats", "copy_stats")
        return self.copy_stats()

    def copy_stats(self):
        """Returns a dict for each replica whose values are put on a device: the number of elements that were copied
        there or written there by a NIC (`direct`), how often `next` found no free place (`waits`), whether memory is
        page-locked, and `gpu_direct`."""
        return self._core.copy_stats()

    def save(self):
        """Returns the position of this process's replicas after the last step, as bytes."""
        return self._core.save()

    def restore(self, state):
        """Restores a saved position. Raises errors.InvalidArgumentError if it was saved for another dataset or group."""
        self._core.restore(state)

    def commit(self, state):
        """Declares a saved state durable, like Iterator.commit."""
        self._core.commit(state)

    def stop(self, timeout=10.0):
        """Ends reading, from any thread; a waiting `next()` raises errors.CancelledError. Values stay valid."""
        self._core.stop(timeout)


# --- Strategies -------------------------------------------------------------------------


class Strategy:
    """The replicas of a ReplicaGroup and their common operations. If the group has several processes, all of them make
    the same calls in the same order, and `reduce` and `gather` need a connected group (ReplicaGroup.connect)."""

    def __init__(self, group):
        self.group = group
        self._threads = None
        self._threads_of = None

    @property
    def num_replicas_in_sync(self):
        """Number of replicas in all processes."""
        return self.group.num_replicas_in_sync

    @contextlib.contextmanager
    def scope(self):
        """Does nothing; it is for scripts written for TensorFlow."""
        yield self

    # --- Reading

    def experimental_distribute_dataset(self, dataset, options=None):
        """Returns a DistributedDataset: each batch of `dataset`, which is a global batch, is divided among the
        replicas."""
        return DistributedDataset(
            _core.distribute_dataset(self.group, dataset._core, _input_options(_with_policy(options, dataset))),
            dataset.element_spec,
        )

    def distribute_datasets_from_function(self, dataset_fn, options=None):
        """Returns a DistributedDataset of the datasets that dataset_fn(InputContext) returns, one for each pipeline.
        Each contains batches for one replica, which are neither divided nor sharded."""
        likes = []

        def call(context):
            dataset = dataset_fn(context)
            if not isinstance(dataset, datasets.Dataset):
                raise TypeError(f"dataset_fn must return a Dataset, not {type(dataset).__name__}")
            likes.append(dataset.element_spec)
            return dataset._core

        core = _core.distribute_datasets_from_function(self.group, call, _input_options(options))
        return DistributedDataset(core, likes[0])

    def experimental_distribute_datasets_from_function(self, dataset_fn, options=None):
        """Older name of `distribute_datasets_from_function`."""
        warnings.warn(
            "experimental_distribute_datasets_from_function is deprecated; use distribute_datasets_from_function",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.distribute_datasets_from_function(dataset_fn, options)

    def experimental_distribute_values_from_function(self, value_fn):
        """Returns a PerReplica with the result of value_fn(ValueContext) for each replica of this process."""
        group = self.group
        return PerReplica(
            value_fn(ValueContext(group.first_replica + i, group.num_replicas_in_sync))
            for i in range(group.num_local_replicas)
        )

    # --- Computing

    def run(self, fn, args=(), kwargs=None):
        """Calls fn(*args, **kwargs) for each replica of this process, with the replica's value in place of each
        PerReplica argument.

        Each call runs on its own thread; the first one runs on the caller's. All calls have returned when this returns.
        The results are nests with PerReplica at the leaves, or the plain result of a single replica. If calls raise,
        the exception of the first such replica is raised.
        """
        if not in_cross_replica_context():
            raise RuntimeError(
                "Strategy.run was called inside a function of Strategy.run; call it outside, with the results"
            )
        kwargs = {} if kwargs is None else kwargs
        count = self.group.num_local_replicas

        def of_replica(i):
            own = _of_replica((args, kwargs), i, count)
            _here.context = ReplicaContext(self, self.group.first_replica + i)
            try:
                return fn(*own[0], **own[1])
            finally:
                _here.context = None

        others = [self._pool().submit(of_replica, i) for i in range(1, count)]
        results = []
        try:
            results.append(of_replica(0))
        finally:
            concurrent.futures.wait(others)
        results.extend(other.result() for other in others)
        return _per_replica(results)

    def reduce(self, reduce_op, value, axis=None, weights=None):
        """Returns the sum ("SUM", ReduceOp.SUM) or mean over all replicas, as a Tensor at each leaf of `value`.

        axis None: value by value; all replicas must have the same shape. axis 0: over the rows of all replicas, whose
        numbers of rows may differ. Each row counts equally, or with its weight in `weights`
        (DistributedIterator.row_weights). A value that is not a PerReplica is the value of each replica. The result is
        identical, bit by bit, in all processes.
        """
        op = getattr(ReduceOp, reduce_op.upper(), None) if isinstance(reduce_op, str) else reduce_op
        if op is None:
            raise ValueError(f"reduce_op must be 'SUM', 'MEAN' or a ReduceOp, not {reduce_op!r}")
        given, of_all, like = self._given(value)
        rows = [] if weights is None else [[float(w) for w in of_replica] for of_replica in weights]
        return nest.packer(like)(self.group._reduce(op, given, of_all, axis, rows))

    def gather(self, value, axis=0):
        """Returns the rows of all replicas one after the other, as a Tensor at each leaf of `value`."""
        if axis != 0:
            raise ValueError(f"gather supports only axis 0, not {axis}; transpose the values before and after it")
        given, of_all, like = self._given(value)
        return nest.packer(like)(self.group._gather(given, of_all))

    def experimental_local_results(self, value):
        """Returns a tuple with the value of each replica of this process; for a nest, one nest for each."""
        count = self.group.num_local_replicas
        return tuple(_of_replica(value, i, count) for i in range(count))

    # --- Inside

    def _pool(self):
        if self._threads_of != os.getpid():  # a forked child does not have the parent's threads
            self._threads = concurrent.futures.ThreadPoolExecutor(
                max(1, self.group.num_local_replicas - 1), thread_name_prefix="replica"
            )
            self._threads_of = os.getpid()
        return self._threads

    def _given(self, value):
        """Returns `value` for _core: each replica's leaves, a spec that fits all of them, and a nest like it."""
        of_replicas = self.experimental_local_results(value)
        given = [[_given_leaf(leaf) for leaf in nest.leaves(one)] for one in of_replicas]
        first = iter(given[0])

        def open_spec(_):
            dtype, shape, _ = next(first)
            return _core.LeafSpec([None] * len(shape), dtype)

        return given, nest.plain(nest.map_leaves(open_spec, of_replicas[0])), of_replicas[0]


class MirroredStrategy(Strategy):
    """All replicas in this process, one per device: "GPU:0", "/gpu:0", "/device:GPU:0", or the same with CPU. None
    means every GPU of this machine, or the CPU if there is no GPU."""

    def __init__(self, devices=None):
        super().__init__(ReplicaGroup.mirrored([] if devices is None else list(devices)))


class MultiWorkerMirroredStrategy(Strategy):
    """Replicas in several processes that torchrun, Slurm or Open MPI started. Each process has one replica, or one for
    each of `devices`. The processes are connected over TCP: process 0 listens at `address`, by default
    MASTER_ADDR:MASTER_PORT."""

    def __init__(self, devices=("CPU:0",), address=""):
        super().__init__(ReplicaGroup.from_environment(list(devices)).connect(address))


# --- Inside -----------------------------------------------------------------------------


def _with_policy(options, dataset):
    """Returns `options`, with the dataset's own sharding policy if `options` has none."""
    policy = dataset.options().experimental_distribute.auto_shard_policy
    options = InputOptions() if options is None else options
    if policy is None or options.auto_shard_policy != AutoShardPolicy.AUTO:
        return options
    return dataclasses.replace(options, auto_shard_policy=policy)


def _input_options(options):
    options = InputOptions() if options is None else options
    return _core.InputOptions(
        options.auto_shard_policy,
        options.partial_batches,
        options.experimental_replication_mode,
        options.steps,
        options.experimental_per_replica_buffer_size,
        options.experimental_fetch_to_device,
        options.replicas_per_element,
        options.seed,
    )


def _of_replica(value, i, count):
    """Returns `value` with replica i's value in place of each PerReplica."""
    if isinstance(value, DistributedValues):
        if len(value) != count:
            raise ValueError(f"got values for {len(value)} replica(s), but this process has {count}")
        return value[i]
    if isinstance(value, list):
        return [_of_replica(member, i, count) for member in value]
    if isinstance(value, dict):
        return nest._dict_like(value, {key: _of_replica(member, i, count) for key, member in value.items()})
    if isinstance(value, tuple):
        return nest._tuple_like(value, [_of_replica(member, i, count) for member in value])
    return value


def _per_replica(results, wrap=PerReplica):
    """Combines the replicas' results. Nests of the same structure become one nest with a PerReplica at each leaf."""
    first = results[0]
    if len(results) == 1:
        return first
    if all(isinstance(one, type(first)) for one in results):
        if isinstance(first, dict) and all(one.keys() == first.keys() for one in results):
            members = {key: _per_replica([one[key] for one in results], wrap) for key in first}
            return nest._dict_like(first, members)
        if isinstance(first, (tuple, list)) and all(len(one) == len(first) for one in results):
            members = [_per_replica(members, wrap) for members in zip(*results)]
            return members if isinstance(first, list) else nest._tuple_like(first, members)
        if first is None:
            return None
    return wrap(results)


def _given_leaf(leaf):
    if isinstance(leaf, (tensor.RaggedTensor, tensor.SparseTensor)):
        raise TypeError("ragged and sparse values of replicas cannot be combined yet; pass their component tensors")
    return values.given(leaf)
