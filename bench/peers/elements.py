# SPDX-License-Identifier: Apache-2.0
"""The elements of T1 for systems that take numpy arrays, and how their reader checks them."""
from __future__ import annotations

import random

import numpy as np

import wire

# The first and the last word of an element: its source in the upper half, its place in that source in the lower.
SOURCE_SHIFT = 32


def make_source(setup: wire.Setup) -> np.ndarray:
    """Random bytes, an element a row; each process makes its own."""
    words = np.random.default_rng(0).integers(0, 2**63, (setup.in_source, setup.element_bytes // 8), np.uint64)
    words[:, 0] = (random.getrandbits(31) << SOURCE_SHIFT) + np.arange(setup.in_source, dtype=np.uint64)
    words[:, -1] = words[:, 0]
    return words.view(np.uint8)


class Reader:
    """Reads elements as the setup says, and checks that each is the one that was due."""

    def __init__(self, setup: wire.Setup, stride: int = 1):
        """A source's elements come in their order, `stride` apart."""
        self._every_byte = setup.touch == wire.EVERY_BYTE
        self._count, self._stride = setup.in_source, stride
        self._due: dict[int, int] = {}  # next place, by source
        self._shares: dict[int, int] = {}
        self.sum = 0  # over all bytes read

    def read(self, element: np.ndarray, due: int | None = None) -> int:
        """Its bytes. `due` is its place where the order tells nothing."""
        words = element.view(np.uint64)
        first, last = int(words[0]), int(words[-1])
        source, place = first >> SOURCE_SHIFT, first & (1 << SOURCE_SHIFT) - 1
        if due is None:
            due = self._due.get(source, place)
        if first != last or place != due:
            raise wire.WrongElement(f"expected element {due} of a source; the first word names {place}, the "
                                    f"last word {last & (1 << SOURCE_SHIFT) - 1}")
        self._due[source] = (place + self._stride) % self._count
        self._shares[source] = self._shares.get(source, 0) + 1
        self.sum ^= int(np.add.reduce(words)) if self._every_byte else int(element[::4096].sum())
        return element.nbytes

    def shares(self) -> list[int]:
        return list(self._shares.values())
