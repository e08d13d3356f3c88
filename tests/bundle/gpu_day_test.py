#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu-day from a bundle, with the tests for GPUs on fake ones, a program that fails and one that hangs."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAILING = """#!/bin/sh
[ "$1" != --gtest_list_tests ] || { echo "Failing."; echo "  Test"; exit 0; }
echo "failing.cc:7: Failure"
echo "a <bad> place"
exit 1
"""
HANGING = """#!/bin/sh
[ "$1" != --gtest_list_tests ] || { echo "Gpu/Hanging.  # TypeParam"; echo "  Test"; exit 0; }
sleep 600
"""
BROKEN = """#!/bin/sh
echo "libcudart.so.13: cannot open shared object file" >&2
exit 127
"""


class GpuDay(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bundle = pathlib.Path(folder.name, "bundle")
        self.results = pathlib.Path(folder.name, "results")
        (self.bundle / "tests").mkdir(parents=True)
        shutil.copy(ROOT / "cmake/gpu-day.sh", self.bundle / "gpu-day")
        (self.bundle / "bin").mkdir()
        for program in ("penstock", "penstock-bench"):
            (self.bundle / "bin" / program).symlink_to(build / "bin" / program)

    def add(self, name, script, folder="tests"):
        (self.bundle / folder / name).write_text(script)
        (self.bundle / folder / name).chmod(0o755)

    def day(self, **environment):
        """Runs gpu-day; returns its exit status and the results by step."""
        done = subprocess.run(
            [self.bundle / "gpu-day", self.results],
            env={**os.environ, "PENSTOCK_BENCH": "--pairs 1 --window 0.05 --size 65536", **environment},
            capture_output=True,
            text=True,
        )
        lines = (self.results / "gpu-day.json").read_text().splitlines()
        return done.returncode, {step["step"]: step for step in map(json.loads, lines)}, done.stdout + done.stderr

    def test_all_steps_pass_and_are_not_done_twice(self):
        (self.bundle / "tests/cuda_gpu_test").symlink_to(rehearsal)
        status, steps, said = self.day(GPU_DAY_SECONDS="0")
        self.assertEqual((status, steps), (2, {}), said)
        self.assertIn(" 0 steps, 0 failed, 6 left", said)

        status, steps, said = self.day()
        self.assertEqual(status, 0, said + (self.results / "failures.txt").read_text())
        suites = [name for name in steps if name.startswith("cuda_gpu_test-")]
        of = ["Gpu_DeviceConformance", "Over_JobsOnGpu", "ShmToGpu"]
        self.assertEqual(sorted(suites), [f"cuda_gpu_test-{suite}" for suite in of])
        self.assertEqual({step["result"] for step in steps.values()}, {"passed"})
        measured = [json.loads(line) for line in (self.results / "gpu-report.json").read_text().splitlines()]
        self.assertGreater(len([row for row in measured if (row.get("gb_per_s") or 0) > 0]), 3)
        self.assertIn('<a href="gpu-report.html">', (self.results / "gpu-day.html").read_text())

        log = self.results / "cuda_gpu_test-ShmToGpu.log"
        log.unlink()
        self.assertEqual(self.day()[0], 0)
        self.assertFalse(log.exists())

    def test_failures_are_reported_with_evidence_and_the_rest_goes_on(self):
        self.add("a_broken", BROKEN)
        self.add("b_failing", FAILING)
        self.add("c_hanging", HANGING)
        self.add("gpu_bench", BROKEN, "bin")
        status, steps, said = self.day(GPU_DAY_STEP="20")
        self.assertEqual(status, 1, said)
        self.assertEqual(steps["a_broken"]["status"], 127)
        self.assertEqual(steps["b_failing-Failing"]["result"], "failed")
        self.assertEqual(steps["c_hanging-Gpu_Hanging"]["result"], "timed out")
        self.assertEqual(steps["gpu_bench"]["result"], "failed")
        self.assertEqual(steps["measurements"]["result"], "passed")
        failures = (self.results / "failures.txt").read_text()
        for evidence in ("libcudart.so.13: cannot open", "failing.cc:7: Failure", "a <bad> place"):
            self.assertIn(evidence, failures)
        page = (self.results / "gpu-day.html").read_text()
        self.assertIn("a &lt;bad&gt; place", page)
        self.assertIn('<td class="bad">timed out', page)

        # A program that was mended is run again, and no other.
        self.add("b_failing", "#!/bin/sh\n[ \"$1\" != --gtest_list_tests ] || { echo Failing.; echo '  Test'; }\n")
        (self.results / "b_failing-Failing.json").unlink()
        _, steps, _ = self.day()
        self.assertEqual(steps["b_failing-Failing"]["result"], "passed")
        self.assertEqual(steps["c_hanging-Gpu_Hanging"]["result"], "timed out")


if __name__ == "__main__":
    build, rehearsal = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
