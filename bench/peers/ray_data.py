# SPDX-License-Identifier: Apache-2.0
"""Ray Data: actors fill blocks of at most 32 MiB in the object store; the consumer takes one element at a time."""
from __future__ import annotations

import contextlib
import os
import signal
from typing import Iterator

import numpy as np
import ray
import ray.data

import elements
import measure
import wire

BLOCK_BYTES = 32 << 20
BLOCKS = 4096  # in one pass over the dataset; passes follow each other
STORE_BYTES = 4 << 30

Batch = dict[str, np.ndarray]


class Fill:
    """An actor, which makes its source once."""

    def __init__(self, setup: wire.Setup):
        self._rows = elements.make_source(setup)

    def __call__(self, batch: Batch) -> Batch:
        return {"id": batch["id"], "bytes": self._rows[batch["id"] % len(self._rows)]}


def rows_in_block(setup: wire.Setup) -> int:
    return max(1, BLOCK_BYTES // setup.element_bytes)


def read_all(setup: wire.Setup) -> Iterator[Batch]:
    dataset = ray.data.range(rows_in_block(setup) * BLOCKS, override_num_blocks=BLOCKS).map_batches(
        Fill, batch_size=None, fn_constructor_args=(setup,), concurrency=setup.workers)
    while True:
        yield from dataset.iter_batches(batch_size=1, batch_format="numpy")


class Reader:
    """Reads elements in any order, because Ray keeps none. Each id must come only once in a pass."""

    def __init__(self, setup: wire.Setup):
        self._in_source, self._in_pass = setup.in_source, rows_in_block(setup) * BLOCKS
        self._reader = elements.Reader(setup)
        self._seen: set[int] = set()

    def read(self, batch: Batch) -> int:
        number = int(batch["id"][0])
        if number in self._seen:
            raise wire.WrongElement(f"element {number} came twice")
        self._seen.add(number)
        if len(self._seen) == self._in_pass:
            self._seen.clear()
        return self._reader.read(batch["bytes"][0], due=number % self._in_source)


def end_cluster() -> None:
    """Kills all processes of the cluster. ray.shutdown() takes seconds, and if the driver is killed during them, Ray's
    agents outlive it."""
    for pid in measure.children(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def start(setup: wire.Setup) -> wire.Peer:
    setup.only("T1", "T1-0")
    ray.init(num_cpus=max(2, setup.workers), object_store_memory=STORE_BYTES, include_dashboard=False,
             log_to_driver=False, logging_level="error",
             runtime_env={"env_vars": {"PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}})
    ray.data.DataContext.get_current().enable_progress_bars = False
    iterator = read_all(setup)
    reader = Reader(setup)
    reader.read(next(iterator))
    return wire.Peer(
        pids={"worker": measure.children(os.getpid()), "consumer": [os.getpid()]},
        about={"system": "ray_data", "version": ray.__version__, "protocol": "object_store", "compression": "none",
               "variant": "", "settings": {"block_bytes": BLOCK_BYTES, "object_store_bytes": STORE_BYTES,
                                           "touch": setup.touch}},
        next=iterator.__next__, read=reader.read, close=end_cluster)


if __name__ == "__main__":
    os._exit(wire.serve(start))  # Ray's exit handler waits for the cluster
