# SPDX-License-Identifier: Apache-2.0
"""How far reading is: `for batch in ps.progress(ds)`."""

import sys
import time


class Progress:
    """Gives the elements of an iterator, and shows how many came. As the iterator's own, an error stands at its element's
    place, and the next `next()` goes on behind it."""

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
    """What stands in for tqdm: a line that is written anew ten times a second on a terminal, and once at the end elsewhere."""

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
    """The elements of a dataset, or of an iterator of one, while a bar shows how many came, of how many, how fast.

    It is tqdm's where tqdm is installed (in a notebook its widget), else a line of text on `file`, standard error if None.
    desc: stands before it. total: how many there will be, where the dataset's `cardinality()` does not know.
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
