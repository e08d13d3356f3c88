# SPDX-License-Identifier: Apache-2.0
"""Objects with threads that must stop when the interpreter exits. Workers stop first, so that no other reader gets data
that ends with the functions that they run. Then these functions, readers, and dispatchers stop."""

import atexit
import os
import typing
import weakref

from . import _core

WORKERS, READERS, DISPATCHERS = range(3)
_running: typing.List[weakref.WeakSet] = [weakref.WeakSet(), weakref.WeakSet(), weakref.WeakSet()]


def stop_at_exit(kind, running):
    """Stops `running` at exit; it has a stop()."""
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
    """Forgets everything in a forked child, where nothing of it runs."""
    for running in _running:
        running.clear()


os.register_at_fork(after_in_child=_forget)


def _stop(kind):
    for running in list(_running[kind]):
        try:
            running.stop()
        except Exception:  # noqa: BLE001 (nobody is left to get it)
            pass
