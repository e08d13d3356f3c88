# SPDX-License-Identifier: Apache-2.0
"""Stops objects with threads when the interpreter exits. Workers stop first, because their functions stop next: no other
reader may get data that these functions left incomplete. Then functions, readers and dispatchers stop."""

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
    """Forgets all objects in a forked child, where their threads do not run."""
    for running in _running:
        running.clear()


os.register_at_fork(after_in_child=_forget)


def _stop(kind):
    for running in list(_running[kind]):
        try:
            running.stop()
        except Exception:  # noqa: BLE001 (no caller is left to handle it)
            pass
