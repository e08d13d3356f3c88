#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how many images per second a Python function decodes from JPEG, by the number of workers that run it.

    functions_bench.py [--workers N…] [--window S] [--rounds N]

Needs `penstock` on PYTHONPATH, OpenCV (the peer `grain` has it: build/peers/grain/bin/python), and the path of the built
command in PENSTOCK_COMMAND. Each worker has one Python process. The numbers of workers are measured in turn, so that
the machine's speed is the same for all. The images are 500 × 375, and are decoded and resized to 224 × 224. The program
fails if an image comes twice.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Iterator

import cv2
import numpy as np
import penstock as ps

service = ps.data.service

SIDE = 224  # pixels
BATCH = 16
LEAD_S = 0.5  # read before each window, and not measured


def make_jpeg() -> bytes:
    """Returns a JPEG with about as much detail as a photograph: some 60 KB."""
    noise = np.random.default_rng(0).integers(0, 256, (94, 125, 3), np.uint8)
    return cv2.imencode(".jpg", cv2.resize(noise, (500, 375), interpolation=cv2.INTER_CUBIC))[1].tobytes()


def decoder():
    jpeg = np.frombuffer(make_jpeg(), np.uint8)

    def decode(number):
        import cv2 as images  # in the worker's process

        images.setNumThreads(0)
        return number, images.resize(images.imdecode(jpeg, images.IMREAD_COLOR), (SIDE, SIDE))

    return decode


class Side:
    """A dispatcher in this process, and workers that each have one Python process."""

    def __init__(self, stack: contextlib.ExitStack, workers: int):
        self.rates: list[float] = []
        dispatcher = service.DispatchServer()
        stack.callback(dispatcher.stop)
        command = [os.environ["PENSTOCK_COMMAND"], "worker", "--dispatcher-address", dispatcher.target.split("://")[1],
                   "--python", "1", "--python-command", sys.executable]
        for _ in range(workers):
            worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            stack.callback(worker.wait)
            stack.callback(worker.terminate)
            if "ready" not in worker.stdout.readline():
                raise RuntimeError("a worker ended before it was ready")
        spec = (ps.TensorSpec([], "int64"), ps.TensorSpec([SIDE, SIDE, 3], "uint8"))
        ds = ps.Dataset.range(1 << 40).map(ps.py_function(decoder(), spec), num_parallel_calls=2).batch(BATCH)
        self._iterator = iter(ds.distribute("distributed_epoch", dispatcher.target))
        stack.callback(self._iterator.stop)
        self._seen: set[int] = set()

    def window(self, seconds: float) -> None:
        self._read(LEAD_S)
        begin = time.perf_counter()
        images = self._read(seconds)
        self.rates.append(images / (time.perf_counter() - begin))

    def _read(self, seconds: float) -> int:
        end, before = time.perf_counter() + seconds, len(self._seen)
        while time.perf_counter() < end:
            numbers = next(self._iterator)[0].numpy().tolist()
            if not self._seen.isdisjoint(numbers):
                raise RuntimeError(f"one of the images {numbers} came twice")
            self._seen.update(numbers)
        return len(self._seen) - before


def measure(workers: list[int], window: float, rounds: int) -> Iterator[dict]:
    with contextlib.ExitStack() as stack:
        sides = {count: Side(stack, count) for count in workers}
        for _ in range(rounds):
            for side in sides.values():
                side.window(window)
        first = sides[workers[0]]
        for count, side in sides.items():
            ratios = [rate / other for rate, other in zip(side.rates, first.rates)]
            yield {"case": "decode", "workers": count, "images_per_s": statistics.median(side.rates),
                   "of_the_first": statistics.median(ratios), "worst": min(ratios), "best": max(ratios)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--window", type=float, default=2, help="seconds")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    for record in measure(args.workers, args.window, args.rounds):
        print(json.dumps(record))
    return 0


if __name__ == "__main__":
    sys.exit(main())
