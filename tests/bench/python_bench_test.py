#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/python as people use it, with too few elements to mean anything.

    python_bench_test.py SOURCE_DIR [unittest arguments]
"""
import json
import pathlib
import subprocess
import sys
import unittest

PROGRAM = None
BOUND = 120  # seconds; only a broken program comes near it


def records(*arguments):
    done = subprocess.run([sys.executable, PROGRAM, *arguments], stdout=subprocess.PIPE, text=True, timeout=BOUND,
                          check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class NextBench(unittest.TestCase):
    def test_landed(self):
        cases = records("landed", "--bytes", "65536", "--count", "20")
        self.assertEqual([(case["trainer"], case["elements_are"]) for case in cases],
                         [("asleep", "Tensor"), ("asleep", "NumPy"), ("awake", "Tensor"), ("awake", "NumPy")])
        for case in cases:
            self.assertLess(0, case["p10_us"])
            self.assertLessEqual(case["p10_us"], case["p50_us"])
            self.assertLessEqual(case["p50_us"], case["p99_us"])
            self.assertEqual("cpu_us" in case, case["trainer"] == "asleep")

    def test_loop(self):
        cases = records("loop", "--elements", "1000")
        self.assertEqual(len(cases), 8)
        for case in cases:
            self.assertEqual(case["elements"], 10 if "batch" in case["element"] else 1000)
            self.assertLess(0, case["cpu_us"])


if __name__ == "__main__":
    PROGRAM = pathlib.Path(sys.argv.pop(1), "bench", "python", "next_bench.py")
    unittest.main()
