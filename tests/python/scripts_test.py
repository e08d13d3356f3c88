# SPDX-License-Identifier: Apache-2.0
"""Scripts written for TensorFlow print the same when only their import line is changed."""
import difflib
import os
import pathlib
import subprocess
import sys
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"
ROOT = SCRIPTS.parents[2]
THERE, HERE = "import tensorflow as tf\n", "import penstock.tf as tf\n"


class Scripts(unittest.TestCase):
    def prints_the_same(self, name):
        script = (SCRIPTS / f"{name}.py").read_text()
        self.assertEqual(script.count(THERE), 1)
        done = subprocess.run(
            [sys.executable, "-c", script.replace(THERE, HERE)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.path.abspath(os.environ.get("PYTHONPATH", ""))},
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        expected = (SCRIPTS / f"{name}.txt").read_text()
        lines = difflib.unified_diff(expected.splitlines(), done.stdout.splitlines(), "TensorFlow", "Penstock", n=0)
        self.assertEqual(done.stdout, expected, "\n".join(lines))

    def test_each_script_is_run(self):
        found = sorted(path.stem for path in SCRIPTS.glob("*.py") if path.stem != "write_outputs")
        run = sorted(name[len("test_of_") :] for name in dir(self) if name.startswith("test_of_"))
        self.assertEqual(run, found)

    def test_of_operations(self):
        self.prints_the_same("operations")

    def test_of_service(self):
        self.prints_the_same("service")

    def test_of_images(self):
        self.prints_the_same("images")

    def test_of_records(self):
        self.prints_the_same("records")

    def test_of_text(self):
        self.prints_the_same("text")


if __name__ == "__main__":
    unittest.main()
