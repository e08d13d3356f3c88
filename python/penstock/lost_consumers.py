# SPDX-License-Identifier: Apache-2.0
"""Reports lost consumers of a coordinated read while the trainer waits elsewhere, for example in a collective."""

import threading
import traceback
import typing

from . import _core, leaving


class LostConsumer(typing.NamedTuple):
    """One change, as the dispatcher sees it."""

    job: str
    consumer: int
    state: str  # "silent" (perhaps only late), "ended" (its connection ended), "dead" or "back"
    heard: float  # when the dispatcher last heard from it, as time.time()
    why: str

    def __str__(self):
        return f"consumer {self.consumer} of job {self.job} is lost: {self.why}"


class OnLostConsumer:
    """Calls `call` with a LostConsumer at each change in the jobs that this process reads, until `close()`.

    The calls come one after the other, on a separate thread, and may block it. No call reports a consumer that was lost
    before this process joined the job, because it may be about to return. Its later death is reported.
    """

    def __init__(self, call):
        self._call = call
        self._watch = _core.LostConsumerWatch()
        self._thread = threading.Thread(target=self._tell, name="penstock lost consumers", daemon=True)
        self._thread.start()
        leaving.stop_at_exit(leaving.READERS, self)

    def close(self):
        """Waits for the current call to return, unless that call itself calls close(). No further call begins."""
        self._watch.stop()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def stop(self):
        """Ends the calls at the exit of the interpreter, without waiting for the current one."""
        self._watch.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _tell(self):
        while (change := self._watch.next()) is not None:
            try:
                self._call(LostConsumer(*change))
            except Exception:  # noqa: BLE001 (the next change is still reported)
                traceback.print_exc()
