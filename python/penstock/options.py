# SPDX-License-Identifier: Apache-2.0
"""tf.data.Options. An unknown name raises AttributeError, so that a misspelt name is noticed."""

from typing import Tuple


class _Fields:
    """Attributes with only these names, None unless they are set."""

    _names: Tuple[str, ...] = ()

    def __init__(self):
        for name in self._names:
            object.__setattr__(self, name, None)

    def __setattr__(self, name, value):
        if name not in self._names:
            raise AttributeError(f"unknown option {name!r}; known options here: {', '.join(self._names)}")
        object.__setattr__(self, name, value)

    def __repr__(self):
        said = {name: value for name, value in vars(self).items() if value is not None and not _is_empty(value)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in said.items())})"

    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class ThreadingOptions(_Fields):
    """private_threadpool_size: number of threads of the process's pool that a dataset may use."""

    _names = ("max_intra_op_parallelism", "private_threadpool_size")


class AutotuneOptions(_Fields):
    """Accepted and ignored: AUTOTUNE selects what is tuned, and the memory budget is the worker's (ram_budget_bytes)."""

    _names = ("autotune_algorithm", "cpu_budget", "enabled", "initial_parallelism", "min_parallelism", "ram_budget")


class DistributeOptions(_Fields):
    """auto_shard_policy: how experimental_distribute_dataset divides the dataset, unless its InputOptions set it."""

    _names = ("auto_shard_policy", "num_devices")


class OptimizationOptions(_Fields):
    """Accepted and ignored: the engine makes its own plan."""

    _names = (
        "apply_default_optimizations",
        "filter_fusion",
        "filter_parallelization",
        "inject_prefetch",
        "map_and_batch_fusion",
        "map_and_filter_fusion",
        "map_fusion",
        "map_parallelization",
        "noop_elimination",
        "parallel_batch",
        "seq_interleave_prefetch",
        "shuffle_and_repeat_fusion",
    )


class Options(_Fields):
    """How a dataset runs. None means an option's default.

    deterministic: False lets partitions merge in any order. threading, experimental_distribute: see their classes.
    The other options of tf.data are accepted and ignored.
    """

    _names = (
        "autotune",
        "dataset_name",
        "deterministic",
        "experimental_distribute",
        "experimental_optimization",
        "experimental_slack",
        "experimental_symbolic_checkpoint",
        "experimental_warm_start",
        "threading",
    )

    def __init__(self):
        super().__init__()
        self.autotune = AutotuneOptions()
        self.experimental_distribute = DistributeOptions()
        self.experimental_optimization = OptimizationOptions()
        self.threading = ThreadingOptions()

    def merge(self, options):
        """Returns these options, overridden by the options that `options` sets."""
        return _merged(self, options)


def _is_empty(value):
    return isinstance(value, _Fields) and value == type(value)()


def _merged(one, other):
    merged = type(one)()
    for name in one._names:
        mine, theirs = getattr(one, name), getattr(other, name)
        if isinstance(mine, _Fields):
            setattr(merged, name, _merged(mine, theirs))
        elif mine is not None or theirs is not None:
            setattr(merged, name, mine if theirs is None else theirs)
    return merged
