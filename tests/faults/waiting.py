# SPDX-License-Identifier: Apache-2.0
"""Waits for what processes do."""
import time

from fleet import Failed

PATIENCE = 60  # seconds


def await_true(condition, otherwise):
    """Returns when condition() is true. Failed, with the words `otherwise`, after PATIENCE."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(otherwise)
        time.sleep(0.02)


def await_words(process, words):
    """Returns when the process has written these words to its errors."""
    await_true(lambda: words in process.errors.read_text(), f"{process.name} does not write '{words}'")
