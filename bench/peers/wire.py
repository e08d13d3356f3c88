# SPDX-License-Identifier: Apache-2.0
"""The protocol between a bench and a peer: one JSON object per line, over standard input and output.
bench/wire.h describes the same lines.

    bench                       peer
    setup                   →
                            ←   {"pids": {role: […]}, "system", "version", "protocol", …} or {"error": text}
    {"seconds": s}          →
                            ←   {"seconds", "elements", "bytes", "p50_us", …} or {"error": text, "data_loss": bool}
    end of input            →   ends

The bench measures CPU and memory by the pids. Latencies are times inside next(). At full speed this is the time between
two elements, not the time that an element is on its way.
"""
from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from typing import Any, Callable, Generic, TextIO, TypeVar

Element = TypeVar("Element")

WARM_S = 0.3  # until buffers are full and pages touched
EVERY_BYTE, EVERY_PAGE = "every byte", "one byte in 4 KiB"
TOUCH_OF = {"T1": EVERY_BYTE, "T1-0": EVERY_PAGE, "I1": EVERY_PAGE, "I1-dct": EVERY_PAGE, "L1-0": EVERY_BYTE,
            "C1": EVERY_PAGE}
STEP_S_OF = {"C1": 0.0035}  # computing time of the reader for each element


class WrongElement(Exception):
    """The element read is not the expected one."""


@dataclasses.dataclass(frozen=True)
class Setup:
    workload: str  # T1: from a cold source; T1-0: from a buffer made once
    element_bytes: int
    workers: int
    consumers: int
    window_s: float
    source_bytes: int  # total of one worker's elements before they repeat
    touch: str  # how much of an element the reader reads
    scratch: str = ""  # folder of the workers' files, if the workload has some

    @staticmethod
    def of(line: dict[str, Any]) -> Setup:
        """Parses a setup. ValueError, naming the field, if no peer supports it."""
        workload, size = line["workload"], line["element_bytes"]
        if workload not in TOUCH_OF:
            raise ValueError(f"the peers support the workloads {', '.join(TOUCH_OF)}, not {workload}")
        if size < 16 or size % 8:
            raise ValueError(f"element_bytes must be a multiple of 8, at least 16, not {size}")
        if line["consumers"] != 1:
            raise ValueError(f"the peers support one consumer, not {line['consumers']}")
        return Setup(workload, size, line["workers"], 1, line["window_s"],
                     size if workload == "T1-0" else max(size, line["source_bytes"]),
                     line.get("touch", TOUCH_OF[workload]), line.get("scratch", ""))

    def only(self, *workloads: str) -> None:
        """ValueError unless the workload is one of these."""
        if self.workload not in workloads:
            raise ValueError(f"this peer supports the workloads {', '.join(workloads)}, not {self.workload}")

    @property
    def in_source(self) -> int:
        """The number of elements in one worker's source."""
        return self.source_bytes // self.element_bytes


@dataclasses.dataclass
class Peer(Generic[Element]):
    """A running system. `next` returns an element; `read` reads and checks it, and returns its size in bytes."""
    pids: dict[str, list[int]]  # by role: consumer, worker, dispatcher
    about: dict[str, Any]  # system, version, protocol, variant, settings, as in the record
    next: Callable[[], Element]
    read: Callable[[Element], int]
    shares: Callable[[], list[int]] = list  # elements by worker so far
    close: Callable[[], None] = lambda: None


def read_window(peer: Peer[Any], seconds: float, step_s: float) -> dict[str, Any]:
    clock = time.perf_counter
    shares = peer.shares()
    next_s: list[float] = []
    moved = 0
    start = now = clock()
    while now < start + seconds:
        element = peer.next()
        next_s.append(clock() - now)
        moved += peer.read(element)
        del element  # frees its memory before the next is requested
        if step_s > 0:
            time.sleep(step_s)
        now = clock()
    elements = len(next_s)
    next_s.sort()
    before = shares + [0] * (len(peer.shares()) - len(shares))
    return {"seconds": now - start, "elements": elements, "bytes": moved,
            "p50_us": next_s[elements // 2] * 1e6, "p99_us": next_s[elements * 99 // 100] * 1e6,
            "max_us": next_s[-1] * 1e6, "shares": [now - then for now, then in zip(peer.shares(), before)]}


def _take_stdout() -> TextIO:
    """Returns standard output, for our lines only. Output of libraries goes to standard error from now on."""
    ours = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return ours


def serve(start: Callable[[Setup], Peer[Any]]) -> int:
    """Answers the bench's lines until the input ends. Returns the exit code."""
    out = _take_stdout()
    peer: Peer[Any] | None = None
    step_s = 0.0
    try:
        for line in sys.stdin:
            order = json.loads(line)
            if peer is None:
                peer = start(Setup.of(order))
                step_s = STEP_S_OF.get(order["workload"], 0.0)
                read_window(peer, min(WARM_S, order["window_s"]), step_s)
                answer = {"pids": peer.pids, **peer.about}
            else:
                answer = read_window(peer, order["seconds"], step_s)
            print(json.dumps(answer), file=out)
    except Exception as error:  # the bench shows any error in a row
        print(json.dumps({"error": f"{type(error).__name__}: {error}", "data_loss": isinstance(error, WrongElement)}),
              file=out)
        return 1
    finally:
        if peer is not None:
            peer.close()
    return 0
