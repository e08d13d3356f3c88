# SPDX-License-Identifier: Apache-2.0
"""tf.data.experimental's names: mostly older forms of methods of Dataset, for `Dataset.apply`."""

from .... import AUTOTUNE, INFINITE_CARDINALITY, SHARD_HINT, UNKNOWN_CARDINALITY, Dataset  # noqa: F401
from ....data import service  # noqa: F401
from ....distribute import AutoShardPolicy  # noqa: F401
from ....options import AutotuneOptions, DistributeOptions, OptimizationOptions, ThreadingOptions  # noqa: F401

Counter = Dataset.counter
choose_from_datasets = Dataset.choose_from_datasets
sample_from_datasets = Dataset.sample_from_datasets


def _older(name):
    method = getattr(Dataset, name)

    def transformation(*args, **keywords):
        return lambda dataset: method(dataset, *args, **keywords)

    transformation.__name__ = transformation.__qualname__ = name
    transformation.__doc__ = f"For `Dataset.apply`: the method `{name}`."
    return transformation


bucket_by_sequence_length = _older("bucket_by_sequence_length")
dense_to_ragged_batch = _older("ragged_batch")
enumerate_dataset = _older("enumerate")
group_by_window = _older("group_by_window")
ignore_errors = _older("ignore_errors")
scan = _older("scan")
take_while = _older("take_while")
unbatch = _older("unbatch")


def cardinality(dataset):
    """Returns the number of elements, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
    return dataset.cardinality()


def get_single_element(dataset):
    """Returns the only element."""
    return dataset.get_single_element()


def shuffle_and_repeat(buffer_size, count=None, seed=None):
    """For `Dataset.apply`: `shuffle`, then `repeat`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def map_and_batch(map_func, batch_size, num_parallel_batches=None, drop_remainder=False, num_parallel_calls=None):
    """For `Dataset.apply`: `map`, then `batch`."""
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


def parallel_interleave(
    map_func, cycle_length, block_length=1, sloppy=False, buffer_output_elements=None, prefetch_input_elements=None
):
    """For `Dataset.apply`: `interleave`."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length, AUTOTUNE)
