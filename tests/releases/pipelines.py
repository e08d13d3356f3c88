# SPDX-License-Identifier: Apache-2.0
"""The datasets and jobs of the recordings. Every release from 0.1 on has these names, so that record.py runs with the
release that it records and releases_test.py with the current one. A recorded dataset must not change: a new one gets a
new name."""
import numpy as np
import penstock as ps

service = ps.data.service

FILES = 6  # lines-0.txt … in the current folder, with LINES numbers each
LINES = 20
NUMBERS = list(range(FILES * LINES))


def write_files():
    """Writes the files of the datasets to the current folder. Datasets name them without a folder."""
    for file in range(FILES):
        with open(f"lines-{file}.txt", "w") as out:
            out.writelines(f"{number}\n" for number in range(file * LINES, (file + 1) * LINES))


def numbers():
    """The numbers in the files, as a dataset that can be divided by file."""
    files = ps.Dataset.list_files("lines-*.txt", shuffle=True, seed=3)
    lines = files.interleave(ps.TextLineDataset, cycle_length=2)
    return lines.map(lambda line: ps.ops.string_to_number(line, ps.int64))


# --- Read in one process ------------------------------------------------------------------------


def _batches():
    return ps.Dataset.range(100).shuffle(20, seed=3).map(lambda x: x * 3).batch(7).prefetch(2)


def _files():
    return numbers().shuffle(16, seed=5).batch(8).repeat(2)


def _cached():
    return ps.Dataset.range(12).map(lambda x: x + 1).cache().shuffle(12, seed=1).repeat(3)


def _kept():
    even = ps.Dataset.range(200).filter(lambda x: x % 2 == 0)
    return even.skip(5).take(60).shard(2, 1).enumerate().map(lambda i, x: x * 100 + i)


def _nested():
    pairs = ps.Dataset.zip(ps.Dataset.range(8), ps.Dataset.range(100, 108))
    pairs = pairs.flat_map(lambda a, b: ps.Dataset.from_tensors({"a": a, "b": b}).repeat(3))
    return pairs.batch(4).unbatch().map(lambda row: {"sum": row["a"] + row["b"], "a": row["a"]})


def _mixed():
    parts = [ps.Dataset.range(20), ps.Dataset.range(100, 120), ps.Dataset.range(200, 220)]
    return ps.Dataset.sample_from_datasets(parts, weights=[0.5, 0.3, 0.2], seed=9, stop_on_empty_dataset=False)


def _strings():
    words = ps.Dataset.from_tensor_slices(["a", "bb", "ccc", "dd", "e", "ffff", "g"])
    return words.concatenate(words.map(ps.ops.string_upper)).batch(3)


def _windows():
    lengths = ps.Dataset.range(40).map(lambda x: ps.ops.range(0, x % 7 + 1))
    return lengths.bucket_by_sequence_length(lambda x: ps.ops.shape_of(x)[0], [3, 5], [4, 4, 4])


def _sums():
    return ps.Dataset.range(50).scan(np.int64(0), lambda total, x: (total + x, total + x)).window(4, shift=3).batch()


def _parallel():
    options = ps.Options()
    options.deterministic = True
    dataset = ps.Dataset.range(60).map(lambda x: x * x, num_parallel_calls=4)
    return dataset.with_options(options).padded_batch(5).prefetch(3)


def _random():
    return ps.Dataset.range(30).map(lambda x: x + ps.ops.cast(ps.ops.random_uniform([], 0.0, 1000.0), ps.int64))


LOCAL = {
    "batches": _batches,
    "files": _files,
    "cached": _cached,
    "kept": _kept,
    "nested": _nested,
    "mixed": _mixed,
    "strings": _strings,
    "windows": _windows,
    "sums": _sums,
    "parallel": _parallel,
    "random": _random,
}
SEED = 17  # of every iterator over these


def plain(element):
    """Returns an element as JSON has it."""
    if isinstance(element, dict):
        return {key: plain(value) for key, value in element.items()}
    if isinstance(element, (tuple, list)):
        return [plain(value) for value in element]
    value = element.numpy()
    value = value.tolist() if hasattr(value, "tolist") else value
    return _text(value)


def _text(value):
    if isinstance(value, list):
        return [_text(one) for one in value]
    return value.decode() if isinstance(value, bytes) else value


# --- Read through a dispatcher -------------------------------------------------------------------

CONSUMERS = 2  # of the coordinated job
DATASET = "numbers"  # the id of the registered dataset


def on_commit():
    """Returns the option by which elements count as delivered once a state that contains them is committed."""
    return {"ack_mode": "ON_COMMIT"} if hasattr(service, "AckMode") else {"keep": service.Keep.COMMITTED}


def finished(target):
    """Returns the dataset of the job that is read to its end. Its elements need no commit."""
    return numbers().distribute("distributed_epoch", target, job_name="finished")


def job(name, target, dataset=None, **options):
    """Returns the dataset of the job `name`, whose elements need a commit."""
    dataset = numbers() if dataset is None else dataset
    return dataset.distribute(
        "distributed_epoch", target, job_name=name, max_outstanding_requests=8, **on_commit(), **options
    )


def consumer(index, target):
    """Returns the dataset of one consumer of the coordinated job."""
    return job("coordinated", target, consumer_index=index, num_consumers=CONSUMERS)


def registered(target):
    """Returns the dataset of a job that reads the registered dataset by its id."""
    return service.from_dataset_id("distributed_epoch", target, DATASET, job_name="registered")
