# SPDX-License-Identifier: Apache-2.0
"""I1, L1-0 and C1: finds and reads the files that `penstock bench` wrote, and checks the elements made of them."""
from __future__ import annotations

import pathlib
from typing import Sequence

import numpy as np

import wire

OF_IMAGES = ("I1", "I1-dct")  # workloads of small and of large images
SIDE = 224  # pixels
IMAGES = 256  # in a batch
AREA, ASPECT = (0.08, 1.0), (3 / 4, 4 / 3)  # of the region cut out of an image

LENGTH = 8192  # tokens; each window also has the next one
WINDOWS = 8  # in a batch

VOLUME = (128, 128, 128, 4)
RECORD_HEAD = 12  # bytes before the data of a TFRecord


def files(setup: wire.Setup, kind: str) -> list[str]:
    """Returns the names of the files, in the order of their numbers."""
    names = sorted(map(str, pathlib.Path(setup.scratch).glob(f"*.{kind}")))
    if not names:
        raise ValueError(f"{setup.workload} reads files that `penstock bench` writes, but there are none in "
                         f"'{setup.scratch}'")
    return names


class Images:
    """Reads batches of (numbers, pixels). The numbers count up from 0, and start again at 0 instead of `numbers`."""

    def __init__(self, numbers: int = 1 << 62):
        self._due, self._numbers = 0, numbers
        self.sum = 0

    def read(self, batch: Sequence[np.ndarray]) -> int:
        numbers, pixels = map(np.asarray, batch)
        due = (self._due + np.arange(IMAGES)) % self._numbers
        if pixels.nbytes != IMAGES * SIDE * SIDE * 3 or not np.array_equal(numbers, due):
            raise wire.WrongElement(f"expected images from {self._due} on, got a batch of {pixels.nbytes} bytes, "
                                    f"from {numbers[0]} on")
        self._due += IMAGES
        self.sum ^= int(pixels.reshape(-1)[::4096].sum(dtype=np.int64))
        return pixels.nbytes


class Windows:
    """Windows of the shards, mapped into memory, by number."""

    def __init__(self, setup: wire.Setup):
        self._shards = [np.memmap(name, np.int32, "r") for name in files(setup, "bin")]
        self._each = (len(self._shards[0]) - 1) // LENGTH

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, number: int) -> np.ndarray:
        number %= self._each * len(self._shards)
        start = number % self._each * LENGTH
        return self._shards[number // self._each][start:start + LENGTH + 1]


class Tokens:
    """Reads batches of windows. Tokens are numbered consecutively over all shards."""

    def __init__(self, setup: wire.Setup):
        names = files(setup, "bin")
        self._tokens = pathlib.Path(names[0]).stat().st_size // 4
        self._each = (self._tokens - 1) // LENGTH
        self._all, self._due = self._each * len(names), 0
        self._steps = np.arange(LENGTH + 1, dtype=np.int32)

    def read(self, batch: np.ndarray) -> int:
        windows = (self._due + np.arange(WINDOWS)) % self._all
        first = windows // self._each * self._tokens + windows % self._each * LENGTH
        if not np.array_equal(batch, first.astype(np.int32)[:, None] + self._steps):
            raise wire.WrongElement(f"expected the tokens of the windows from {self._due} on, got others")
        self._due += WINDOWS
        return batch.nbytes


def read_record(name: str) -> np.ndarray:
    """Returns the only record of a TFRecord file as uint8. Does not check its CRC32C, which NumPy cannot compute."""
    return np.fromfile(name, np.uint8, int(np.prod(VOLUME)), offset=RECORD_HEAD)


class Volumes:
    """Reads widened records. The first and the last 8 values of each are its number."""

    def __init__(self, setup: wire.Setup):
        self._due, self._count = 0, len(files(setup, "tfrecord"))
        self.sum = 0

    def read(self, volume: np.ndarray) -> int:
        values = volume.reshape(-1)
        ends = {int.from_bytes(values[part].astype(np.uint8).tobytes(), "little")
                for part in (slice(8), slice(-8, None))}
        if volume.dtype != np.int16 or ends != {self._due}:
            raise wire.WrongElement(f"expected int16 values of record {self._due}, got {volume.dtype} of {ends}")
        self._due = (self._due + 1) % self._count
        self.sum ^= int(values[::2048].sum(dtype=np.int64))
        return volume.nbytes
