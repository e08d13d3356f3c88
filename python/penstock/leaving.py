# SPDX-License-Identifier: Apache-2.0
"""What is stopped when the interpreter goes, since it has threads: readers first, then workers, then dispatchers."""

import atexit
import weakref

from . import _core

READERS, WORKERS, DISPATCHERS = range(3)
_running = [weakref.WeakSet(), weakref.WeakSet(), weakref.WeakSet()]


def stop_at_exit(kind, running):
    """`running` has a stop()."""
    _running[kind].add(running)


@atexit.register
def _stop_all():
    _core.begin_to_leave()
    _core.stop_python()  # so that no reader waits for a function
    for kind in _running:
        for running in list(kind):
            try:
                running.stop()
            except Exception:  # noqa: BLE001 (nobody is left to hear of it)
                pass
    _core.await_others()
