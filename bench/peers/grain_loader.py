# SPDX-License-Identifier: Apache-2.0
"""Grain's multi-process prefetch: workers make elements and pass them to the consumer in shared memory."""
from __future__ import annotations

import importlib.metadata
import math
import os
import pathlib
import sys
from typing import Any

import grain
import numpy as np

import elements
import measure
import prepared
import wire


class Source:
    """A random-access source for Grain. Each process makes the bytes at its first access."""

    def __init__(self, setup: wire.Setup):
        self._setup = setup
        self._rows: np.ndarray | None = None

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, index: int) -> np.ndarray:
        if self._rows is None:
            self._rows = elements.make_source(self._setup)
        return self._rows[index % len(self._rows)]


class Files:
    """Yields (number, name) of the files, repeated endlessly."""

    def __init__(self, names: list[str]):
        self._names = names

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, index: int) -> tuple[int, str]:
        return index, self._names[index % len(self._names)]


def random_region(height: int, width: int, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """Returns (top, left, height, width), drawn as torchvision's RandomResizedCrop does."""
    for _ in range(10):
        area = height * width * rng.uniform(*prepared.AREA)
        aspect = math.exp(rng.uniform(*map(math.log, prepared.ASPECT)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return int(rng.integers(height - h + 1)), int(rng.integers(width - w + 1)), h, w
    return 0, 0, height, width


def prepare(file: tuple[int, str], rng: np.random.Generator) -> tuple[int, np.ndarray]:
    import cv2  # in the worker, and only for images
    cv2.setNumThreads(0)
    number, name = file
    image = cv2.imdecode(np.frombuffer(pathlib.Path(name).read_bytes(), np.uint8), cv2.IMREAD_COLOR_RGB)
    top, left, height, width = random_region(*image.shape[:2], rng)
    image = cv2.resize(image[top:top + height, left:left + width], (prepared.SIDE, prepared.SIDE))
    return number, cv2.flip(image, 1) if rng.random() < 0.5 else image


def widen(file: tuple[int, str]) -> np.ndarray:
    return prepared.read_record(file[1]).reshape(prepared.VOLUME).astype(np.int16)


def open_dataset(setup: wire.Setup) -> tuple[grain.MapDataset, Any, dict[str, Any]]:
    """Returns the dataset, the reader of its elements, and further settings for the record."""
    if setup.workload in prepared.OF_IMAGES:
        files = grain.MapDataset.source(Files(prepared.files(setup, "jpg"))).seed(1)
        return (files.random_map(prepare).batch(prepared.IMAGES), prepared.Images(),
                {"opencv": importlib.metadata.version("opencv-python-headless")})
    if setup.workload == "L1-0":
        windows = grain.MapDataset.source(prepared.Windows(setup))
        return windows.batch(prepared.WINDOWS), prepared.Tokens(setup), {}
    if setup.workload == "C1":
        files = grain.MapDataset.source(Files(prepared.files(setup, "tfrecord")))
        return files.map(widen), prepared.Volumes(setup), {"checksums": False}
    return grain.MapDataset.source(Source(setup)), elements.Reader(setup, stride=setup.workers), {}


def start(setup: wire.Setup) -> wire.Peer:
    dataset, reader, settings = open_dataset(setup)
    iterator = iter(dataset.to_iter_dataset(grain.ReadOptions(num_threads=0)).mp_prefetch(
        grain.MultiprocessingOptions(num_workers=setup.workers)))
    reader.read(next(iterator))  # starts the workers
    return wire.Peer(
        pids={"worker": measure.children(os.getpid()), "consumer": [os.getpid()]},
        about={"system": "grain", "version": importlib.metadata.version("grain"), "protocol": "shm",
               "compression": "none", "variant": "",
               "settings": {"num_threads": 0, "touch": setup.touch, **settings}},
        next=iterator.__next__, read=reader.read, shares=getattr(reader, "shares", list))


if __name__ == "__main__":
    sys.exit(wire.serve(start))
