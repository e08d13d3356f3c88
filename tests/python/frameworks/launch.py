# SPDX-License-Identifier: Apache-2.0
"""launch.py TEST FRAMEWORK: runs a test with an interpreter that has the framework, or prints why it is skipped."""
import os
import pathlib
import subprocess
import sys

SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent
INSTALLED = HERE.parents[2] / "build/frameworks/bin/python"

test, framework = sys.argv[1:]
python = os.environ.get("PENSTOCK_FRAMEWORKS") or str(INSTALLED)
if not os.path.exists(python):
    print(f"skipped: {python} does not exist; ./run deps frameworks installs {framework}")
    sys.exit(SKIPPED)
ours = "import sys; print(*sys.version_info[:2])"
if subprocess.check_output([python, "-c", ours]) != subprocess.check_output([sys.executable, "-c", ours]):
    print(f"skipped: {python} has another version than {sys.executable}, for which the module was built")
    sys.exit(SKIPPED)
found = subprocess.run([python, "-c", f"import {framework}"], capture_output=True, text=True)
if found.returncode != 0:
    print(f"skipped: {python} has no {framework}: {found.stderr.strip().splitlines()[-1]}")
    sys.exit(SKIPPED)
os.execv(python, [python, str(HERE / test)])
