# SPDX-License-Identifier: Apache-2.0
"""Progress bars for reading: `for batch in ps.progress(ds)`."""

import sys
import time


class Progress:
    """Yields the elements of an iterator and shows how many were read. As with the iterator itself, an error takes the
    place of its element, and the next `next()` continues after it."""

    def __init__(self, iterator, bar):
        self._iterator = iterator
        self._bar = bar

    def __iter__(self):
        return self

    def __next__(self):
        try:
            element = next(self._iterator)
        except StopIteration:
            self._bar.close()
            raise
        self._bar.update(1)
        return element


class Line:
    """The bar without tqdm: one line that is rewritten ten times a second on a terminal, and printed once at the end
    elsewhere."""

    def __init__(self, total, desc, file):
        self._total = total
        self._desc = desc
        self._file = file
        self._count = 0
        self._begun = self._written = time.monotonic()

    def update(self, count):
        self._count += count
        now = time.monotonic()
        if self._file.isatty() and now - self._written >= 0.1:
            self._written = now
            self._file.write(f"\r{self._text(now)}")
            self._file.flush()

    def close(self):
        start = "\r" if self._file.isatty() else ""
        self._file.write(f"{start}{self._text(time.monotonic())}\n")
        self._file.flush()

    def _text(self, now):
        of = "" if self._total is None else f" of {self._total}"
        rate = self._count / max(now - self._begun, 1e-9)
        return f"{self._desc + ': ' if self._desc else ''}{self._count}{of} elements, {rate:.1f}/s"


def progress(dataset, desc=None, total=None, file=None):
    """Yields the elements of a dataset, or of an iterator over one, and shows a bar: how many were read, of how many,
    and how fast.

    If tqdm is installed, the bar is tqdm's (in a notebook, its widget). Otherwise it is a line of text on `file`,
    standard error if None. desc: text before the bar. total: the number of elements, needed only if the dataset's
    `cardinality()` is unknown.
    """
    if total is None and hasattr(dataset, "cardinality"):
        cardinality = dataset.cardinality()
        total = cardinality if cardinality >= 0 else None
    return Progress(iter(dataset), _bar(total, desc, file))


def _bar(total, desc, file):
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return Line(total, desc, file or sys.stderr)
    return tqdm(total=total, desc=desc, file=file, unit=" elements")
