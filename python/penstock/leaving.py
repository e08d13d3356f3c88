# SPDX-License-Identifier: Apache-2.0
"""What is stopped when the interpreter goes, since it has threads: workers first, so that nobody else is given what
ends with the functions that they run; then those, readers, and dispatchers."""

import atexit
import os
import typing
import weakref

from . import _core

WORKERS, READERS, DISPATCHERS = range(3)
_running: typing.List[weakref.WeakSet] = [weakref.WeakSet(), weakref.WeakSet(), weakref.WeakSet()]


def stop_at_exit(kind, running):
    """`running` has a stop()."""
    _running[kind].add(running)


@atexit.register
def _stop_all():
    _core.begin_to_leave()
    _stop(WORKERS)
    _core.stop_python()  # so that no reader waits for a function
    _stop(READERS)
    _stop(DISPATCHERS)
    _core.await_others()


def _forget():
    """In a forked child nothing of it runs."""
    for running in _running:
        running.clear()


os.register_at_fork(after_in_child=_forget)


def _stop(kind):
    for running in list(_running[kind]):
        try:
            running.stop()
        except Exception:  # noqa: BLE001 (nobody is left to hear of it)
            pass
