#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what reading an element costs in Python.

    next_bench.py landed [--bytes N…]   reads through a service, with elements ready in this process's slots: the time of
                                        next(it) until there is a NumPy array, and the CPU time of all threads of this
                                        process per element, less that of the same loop over an array of its own
    next_bench.py loop                  `for x in ds` without a service: CPU time per element, for several kinds of element

Needs `penstock` on PYTHONPATH. The servers run in a separate process. Nothing reads the elements' contents, so a trainer
needs more time. Prints one JSON object per case, and a line for people on standard error.
"""
from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Iterator

import numpy as np
import penstock as ps

service = ps.data.service

FILE_BYTES = 64 << 20  # source of the workers' elements
WARM = 100  # elements that are not counted
STEP_S = 0.002  # of the trainer; a worker can refill returned slots in this time
LOOP_ELEMENTS = 500_000

KINDS: dict[str, Callable[[ps.Dataset], Iterator[Any]]] = {"Tensor": iter, "NumPy": ps.Dataset.as_numpy_iterator}


def quantiles(nanoseconds: list[int]) -> dict[str, float]:
    ordered = sorted(nanoseconds)
    return {f"p{q}_us": ordered[len(ordered) * q // 100] / 1e3 for q in (10, 50, 90, 99)}


# --- landed ------------------------------------------------------------------------------------


def serve() -> int:
    """Runs a dispatcher and a worker until the input ends."""
    dispatcher = service.DispatchServer()
    worker = service.WorkerServer(service.WorkerConfig(dispatcher.target.split("://")[1]))
    print(dispatcher.target, flush=True)
    sys.stdin.read()
    worker.stop()
    dispatcher.stop()
    return 0


@contextlib.contextmanager
def servers() -> Iterator[str]:
    """Yields the address of the dispatcher."""
    with subprocess.Popen([sys.executable, __file__, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as process:
        target = process.stdout.readline().strip()
        if not target:
            raise RuntimeError("the servers ended before they were ready")
        yield target
        process.stdin.close()


def compute_asleep() -> None:
    time.sleep(STEP_S)  # like a trainer that waits for a GPU: it wakes with cold caches


def compute_awake() -> None:
    end = time.perf_counter() + STEP_S
    while time.perf_counter() < end:
        pass


STEPS = {"asleep": compute_asleep, "awake": compute_awake}


def read_landed(iterator: Iterator[Any], state: str, count: int) -> dict[str, float]:
    step, clock = STEPS[state], time.perf_counter_ns
    taken: list[int] = []
    for number in range(WARM + count):
        if number == WARM:
            cpu = time.process_time()
        step()
        begin = clock()
        array = np.asarray(next(iterator))
        taken.append(clock() - begin)
        del array  # returns its slot
    cpu = time.process_time() - cpu
    return quantiles(taken[WARM:]) | ({"cpu_us": cpu / count * 1e6} if state == "asleep" else {})


def landed(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with servers() as target, tempfile.TemporaryDirectory() as folder:
        for size in args.bytes:
            rows = max(2, FILE_BYTES // size)
            file = f"{folder}/{size}.npy"
            np.save(file, np.random.default_rng(0).integers(0, 256, (rows, size), np.uint8))
            ds = ps.NpyDataset([file], ps.TensorSpec([size], "uint8")).repeat()
            ds = ds.distribute("parallel_epochs", target, data_transfer_protocol=args.protocol)
            own = itertools.repeat(np.zeros(size, np.uint8))
            idle_us = read_landed(own, "asleep", args.count)["cpu_us"]
            for state in STEPS:
                for kind, iterate in KINDS.items():
                    taken = read_landed(iterate(ds), state, args.count)
                    if "cpu_us" in taken:
                        taken["cpu_us"] -= idle_us
                    yield {"case": "landed", "protocol": args.protocol, "element_bytes": size, "trainer": state,
                           "elements_are": kind, **taken}


# --- loop --------------------------------------------------------------------------------------


def loop(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    scalars = ps.Dataset.range(args.elements)
    datasets = {"scalar": scalars, "batch of 100": scalars.batch(100),
                "tuple of 2": ps.Dataset.zip(scalars, scalars), "dict of 4": scalars.map(
                    lambda x: {"a": x, "b": x, "c": x, "d": x})}
    for name, ds in datasets.items():
        for kind, iterate in KINDS.items():
            cpu, count = time.process_time(), 0
            for _ in iterate(ds):
                count += 1
            cpu = time.process_time() - cpu
            yield {"case": "loop", "element": name, "elements_are": kind, "elements": count,
                   "cpu_us": cpu / count * 1e6}


def line_of(record: dict[str, Any]) -> str:
    words = [str(value) for name, value in record.items() if not isinstance(value, float)]
    return "  ".join(words + [f"{name} {value:.2f}" for name, value in record.items() if isinstance(value, float)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cases = parser.add_subparsers(dest="case", required=True)
    of_landed = cases.add_parser("landed")
    of_landed.add_argument("--bytes", type=int, nargs="+", default=[1 << 20, 9633792], help="bytes of an element")
    of_landed.add_argument("--count", type=int, default=1000, help="elements")
    of_landed.add_argument("--protocol", default="shm", help="data_transfer_protocol")
    cases.add_parser("loop").add_argument("--elements", type=int, default=LOOP_ELEMENTS)
    cases.add_parser("serve")
    args = parser.parse_args()
    if args.case == "serve":
        return serve()
    for record in (landed if args.case == "landed" else loop)(args):
        print(json.dumps(record), flush=True)
        print(line_of(record), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
