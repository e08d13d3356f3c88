# SPDX-License-Identifier: Apache-2.0
"""Grain's multi-process prefetch: workers make elements, which cross to the consumer in shared memory."""
from __future__ import annotations

import importlib.metadata
import os
import sys

import grain
import numpy as np

import elements
import measure
import wire


class Source:
    """Grain's random access; the bytes are made in the process that first asks for them."""

    def __init__(self, setup: wire.Setup):
        self._setup = setup
        self._rows: np.ndarray | None = None

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, index: int) -> np.ndarray:
        if self._rows is None:
            self._rows = elements.make_source(self._setup)
        return self._rows[index % len(self._rows)]


def start(setup: wire.Setup) -> wire.Peer:
    dataset = grain.MapDataset.source(Source(setup)).to_iter_dataset(
        grain.ReadOptions(num_threads=0)).mp_prefetch(grain.MultiprocessingOptions(num_workers=setup.workers))
    iterator = iter(dataset)
    reader = elements.Reader(setup, stride=setup.workers)
    reader.read(next(iterator))  # starts the workers
    return wire.Peer(
        pids={"worker": measure.children(os.getpid()), "consumer": [os.getpid()]},
        about={"system": "grain", "version": importlib.metadata.version("grain"), "protocol": "shm",
               "compression": "none", "variant": "", "settings": {"num_threads": 0, "touch": setup.touch}},
        next=iterator.__next__, read=reader.read, shares=reader.shares)


if __name__ == "__main__":
    sys.exit(wire.serve(start))
