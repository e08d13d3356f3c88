# SPDX-License-Identifier: Apache-2.0
"""The elements of T1 for systems that take NumPy arrays, and the reader that checks them."""
from __future__ import annotations

import random

import numpy as np

import wire

# The first and the last word of an element hold the number of its source in the upper half, and the element's place in
# that source in the lower half.
SOURCE_SHIFT = 32


def make_source(setup: wire.Setup) -> np.ndarray:
    """Returns random bytes, one element per row. The source number differs in each process."""
    words = np.random.default_rng(0).integers(0, 2**63, (setup.in_source, setup.element_bytes // 8), np.uint64)
    words[:, 0] = (random.getrandbits(31) << SOURCE_SHIFT) + np.arange(setup.in_source, dtype=np.uint64)
    words[:, -1] = words[:, 0]
    return words.view(np.uint8)


class Reader:
    """Reads as much of each element as the setup requires, and checks that it is the expected one."""

    def __init__(self, setup: wire.Setup, stride: int = 1):
        """The elements of one source must come in order, each `stride` places after the previous one."""
        self._every_byte = setup.touch == wire.EVERY_BYTE
        self._count, self._stride = setup.in_source, stride
        self._due: dict[int, int] = {}  # next place, by source
        self._shares: dict[int, int] = {}
        self.sum = 0  # over all bytes read

    def read(self, element: np.ndarray, due: int | None = None) -> int:
        """Returns the element's size in bytes. `due`: its place in the source; None: it follows from the order."""
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
