# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader: each worker copies its numpy arrays once, into shared memory."""
from __future__ import annotations

import os
import sys
from typing import Iterator

import numpy as np
import torch
import torch.utils.data

import elements
import measure
import wire


class Elements(torch.utils.data.IterableDataset):
    def __init__(self, setup: wire.Setup):
        self._setup = setup

    def __iter__(self) -> Iterator[np.ndarray]:
        rows = elements.make_source(self._setup)
        while True:
            yield from rows


def start(setup: wire.Setup) -> wire.Peer:
    # batch_size None: an element is a batch, and nothing is collated.
    iterator = iter(torch.utils.data.DataLoader(Elements(setup), batch_size=None, num_workers=setup.workers))
    reader = elements.Reader(setup)
    reader.read(next(iterator).numpy())
    return wire.Peer(
        pids={"worker": measure.children(os.getpid()), "consumer": [os.getpid()]},
        about={"system": "torch_dataloader", "version": torch.__version__, "protocol": "shm_file",
               "compression": "none", "variant": "",
               "settings": {"prefetch_factor": 2, "sharing": torch.multiprocessing.get_sharing_strategy(),
                            "touch": setup.touch}},
        next=iterator.__next__, read=lambda tensor: reader.read(tensor.numpy()), shares=reader.shares)


if __name__ == "__main__":
    sys.exit(wire.serve(start))
