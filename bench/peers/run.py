#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures windows of several peers in turn. Prints one JSON object per line, and a table for people on standard error.

The first peer is compared with each of the others, window by window. A peer is a name that start.py knows, or the
command line of any program that speaks the protocol of wire.py.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import pathlib
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import measure
import start

BOUND_FOREIGN_CORES = 0.12  # cores used by others; a pair with more is dropped if there are cleaner ones
LEAD = 0.25  # share of a window; bench/side.cc gives the reason
STOP_S = 15.0  # for an orderly end

Record = dict[str, Any]


class Side:
    """A peer that runs, or the reason why it does not."""

    def __init__(self, name: str, setup: Record):
        self.name, self.setup, self.error, self.windows = name, setup, "", []
        command = [str(start.HERE / "start.py"), name] if name in start.PEERS else shlex.split(name)
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
                                         text=True)
        self.about = self._ask(setup)
        self.roles: measure.Roles = self.about.pop("pids", {})

    def rest(self, signal_number: int = signal.SIGSTOP) -> None:
        """Stops all of its processes until wake(). Otherwise it would prepare elements during the others' windows: this
        would slow them down, and its own rate would be too high."""
        for pid in [*measure.children(self._process.pid), self._process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal_number)

    def wake(self) -> None:
        self.rest(signal.SIGCONT)

    def _ask(self, line: Record) -> Record:
        """Returns the peer's answer. If there is none, it is empty and `error` is the reason."""
        with contextlib.suppress(BrokenPipeError):  # if it has ended, its last output has the reason
            self._process.stdin.write(json.dumps(line) + "\n")
            self._process.stdin.flush()
        try:
            answer = json.loads(self._process.stdout.readline())
        except json.JSONDecodeError:
            self._log.seek(0)
            answer = {"error": "the peer ended; " + " ".join(self._log.read().decode(errors="replace").split())[-400:]}
        self.error = answer.pop("error", "")
        return answer

    def case(self) -> Record:
        return {"v": 1, "workload": self.setup["workload"], "system": self.name, "compression": "none", **self.about,
                **{field: self.setup[field] for field in ("element_bytes", "workers", "consumers")}}

    def window(self, seconds: float) -> None:
        """Appends a window to `windows`, unless there is an error. Elements that were ready are read before it."""
        self.wake()
        self._measure(seconds)
        self.rest()

    def _measure(self, seconds: float) -> None:
        self._ask({"seconds": seconds * LEAD})
        if self.error:
            return
        cpu = measure.by_role(self.roles, measure.cpu_seconds)
        busy, began = measure.busy_seconds(), time.monotonic()
        done = self._ask({"seconds": seconds})
        if self.error:
            return
        took, busy = time.monotonic() - began, measure.busy_seconds() - busy
        used = {role: now - cpu[role] for role, now in measure.by_role(self.roles, measure.cpu_seconds).items()}
        rss = measure.by_role(self.roles, measure.resident_bytes)
        gb, total = done["bytes"] / 1e9, sum(used.values())
        self.windows.append({
            **self.case(), "run": len(self.windows), **done, "elements_per_s": done["elements"] / done["seconds"],
            "gb_per_s": gb / done["seconds"], "cpu_s_per_gb": total / gb,
            "cpu_s_per_gb_by_role": {role: seconds / gb for role, seconds in used.items()},
            "trainer_cpu_s_per_gb": used.get("consumer", 0) / gb,
            "cpu_us_per_element": total * 1e6 / done["elements"], "rss_mb": sum(rss.values()) / 1e6,
            "rss_mb_by_role": {role: value / 1e6 for role, value in rss.items()},
            "foreign_cores": max(0.0, (busy - total) / took)})

    def stop(self) -> None:
        self.wake()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()


def kept_pairs(ours: Side, other: Side) -> list[tuple[Record, Record]]:
    pairs = list(zip(ours.windows, other.windows))
    clean = [pair for pair in pairs if all(window["foreign_cores"] <= BOUND_FOREIGN_CORES for window in pair)]
    return clean or pairs


def spread(values: list[float]) -> tuple[float, float, float]:
    return statistics.median(values), min(values), max(values)


def summary(side: Side) -> Record:
    record = {**side.case(), "summary": True, "windows": len(side.windows)}
    for field in ("elements_per_s", "gb_per_s", "p50_us", "p99_us", "cpu_s_per_gb", "trainer_cpu_s_per_gb", "rss_mb",
                  "foreign_cores"):
        values = [window[field] for window in side.windows]
        if values:
            record[field], record["min_" + field], record["max_" + field] = spread(values)
    return {**record, "error": side.error} if side.error else record


def comparison(ours: Side, other: Side) -> Record:
    """Returns the comparison of `ours` with `other`: medians over the pairs that were kept."""
    record = {**ours.case(), "summary": True, "limit": other.name, "pairs": len(other.windows)}
    pairs = kept_pairs(ours, other)
    if pairs:
        rates = [one["gb_per_s"] / two["gb_per_s"] for one, two in pairs]
        record |= {"kept_pairs": len(pairs), "ratio": statistics.median(rates), "worst_ratio": min(rates),
                   "best_ratio": max(rates)}
        for field in ("cpu", "trainer_cpu"):
            used = [(one[field + "_s_per_gb"], two[field + "_s_per_gb"]) for one, two in pairs]
            # CPU time is counted in ticks of 10 ms, so it may be 0 in a short window.
            record[field + "_ratio"] = statistics.median(one / two for one, two in used) if all(
                two for _, two in used) else None
    return {**record, "error": other.error} if other.error else record


def table_line(record: Record) -> str:
    name = f"{record['system']} {record.get('protocol', '')} {record.get('variant', '')}".strip()
    text = f"{record['workload']} {record['element_bytes']:>11,} B  {name:<34}"
    if record.get("error"):
        return text + record["error"]
    if "limit" in record:
        return text + (f"{record['ratio']:.2f} ({record['worst_ratio']:.2f}-{record['best_ratio']:.2f}) of "
                       f"{record['limit']}, CPU {record['cpu_ratio'] or math.nan:.3f}, {record['kept_pairs']} pairs")
    return text + (f"{record['gb_per_s']:.3g} ({record['min_gb_per_s']:.3g}-{record['max_gb_per_s']:.3g}) GB/s "
                   f"{record['elements_per_s']:.4g}/s  {record['cpu_s_per_gb']:.3g} CPU s/GB  "
                   f"p50 {record['p50_us']:.4g} us  {record['rss_mb']:.0f} MB  others {record['foreign_cores']:.2f}")


def run_case(names: list[str], setup: Record, pairs: int, seconds: float) -> list[Record]:
    sides: list[Side] = []
    try:
        for name in names:
            sides.append(Side(name, setup))
        for side in sides:  # only now: while others start, a service would take minutes without reads for an outage
            side.rest()
        for _ in range(pairs):
            for side in sides:
                if not side.error:
                    side.window(seconds)
        records = [window for side in sides for window in side.windows] + [summary(side) for side in sides]
        return records + [comparison(sides[0], other) for other in sides[1:] if not sides[0].error]
    finally:
        for side in sides:
            side.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", nargs="+", help=f"{', '.join(start.PEERS)}, or a command")
    parser.add_argument("--workload", default="T1", help="T1 (cold source, every byte read) or T1-0 (made once)")
    parser.add_argument("--size", type=int, nargs="+", default=[4096, 65536, 1 << 20, 9633792, 38535168],
                        help="bytes of an element")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--window", type=float, default=2, help="seconds")
    parser.add_argument("--touch", choices=("every byte", "one byte in 4 KiB"), help="default: the workload's own")
    parser.add_argument("--source-mib", type=int, default=512)
    parser.add_argument("--json", type=pathlib.Path, help="append to this file instead of printing to standard output")
    args = parser.parse_args()
    out = args.json.open("a") if args.json else sys.stdout
    for size in args.size:
        setup = {"workload": args.workload, "protocol": "", "element_bytes": size, "workers": args.workers,
                 "consumers": 1, "window_s": args.window, "source_bytes": args.source_mib << 20}
        if args.touch:
            setup["touch"] = args.touch
        for record in run_case(args.peer, setup, args.pairs, args.window):
            print(json.dumps(record), file=out, flush=True)
            if "summary" in record:
                print(table_line(record), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
