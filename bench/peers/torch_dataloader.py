# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader: workers make arrays or, for images, tensors. Each is copied once, into shared memory."""
from __future__ import annotations

import os
import sys
from typing import Any, Iterator

import numpy as np
import torch
import torch.utils.data

import elements
import measure
import prepared
import wire

Loader = torch.utils.data.DataLoader


class Elements(torch.utils.data.IterableDataset):
    def __init__(self, setup: wire.Setup):
        self._setup = setup

    def __iter__(self) -> Iterator[np.ndarray]:
        rows = elements.make_source(self._setup)
        while True:
            yield from rows


class Images(torch.utils.data.Dataset):
    def __init__(self, setup: wire.Setup):
        self._names = prepared.files(setup, "jpg")

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, number: int) -> tuple[int, torch.Tensor]:
        import torch_images  # in the worker, and only for images
        import torchvision
        return number, torch_images.prepare(torchvision.io.read_file(self._names[number % len(self._names)]))


class Windows(prepared.Windows, torch.utils.data.Dataset):
    def __getitem__(self, number: int) -> torch.Tensor:
        return torch.from_numpy(np.array(super().__getitem__(number)))


class Volumes(torch.utils.data.Dataset):
    def __init__(self, setup: wire.Setup):
        self._names = prepared.files(setup, "tfrecord")

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, number: int) -> torch.Tensor:
        record = prepared.read_record(self._names[number % len(self._names)])
        return torch.from_numpy(record).reshape(prepared.VOLUME).to(torch.int16)


def open_loader(setup: wire.Setup) -> tuple[Loader, Any, dict[str, Any]]:
    """Returns the loader, the reader of its elements, and further settings for the record."""
    if setup.workload in prepared.OF_IMAGES:
        import torch_images
        return Loader(Images(setup), prepared.IMAGES, num_workers=setup.workers), prepared.Images(), torch_images.ABOUT
    if setup.workload == "L1-0":
        return Loader(Windows(setup), prepared.WINDOWS, num_workers=setup.workers), prepared.Tokens(setup), {}
    # batch_size None: an element is already a batch, so nothing is collated.
    if setup.workload == "C1":
        return (Loader(Volumes(setup), None, num_workers=setup.workers), prepared.Volumes(setup),
                {"checksums": False})
    return Loader(Elements(setup), None, num_workers=setup.workers), elements.Reader(setup), {}


def to_numpy(element: Any) -> Any:
    return [tensor.numpy() for tensor in element] if isinstance(element, (list, tuple)) else element.numpy()


def start(setup: wire.Setup) -> wire.Peer:
    loader, reader, settings = open_loader(setup)
    iterator = iter(loader)
    reader.read(to_numpy(next(iterator)))
    return wire.Peer(
        pids={"worker": measure.children(os.getpid()), "consumer": [os.getpid()]},
        about={"system": "torch_dataloader", "version": torch.__version__, "protocol": "shm_file",
               "compression": "none", "variant": "",
               "settings": {"prefetch_factor": 2, "sharing": torch.multiprocessing.get_sharing_strategy(),
                            "touch": setup.touch, **settings}},
        next=iterator.__next__, read=lambda element: reader.read(to_numpy(element)),
        shares=getattr(reader, "shares", list))


if __name__ == "__main__":
    sys.exit(wire.serve(start))
