# SPDX-License-Identifier: Apache-2.0
"""Writes what each script here prints with TensorFlow.

    ./run deps peers tfdata
    build/peers/tfdata/bin/python tests/python/scripts/write_outputs.py
"""
import os
import pathlib
import subprocess
import sys

SCRIPTS = pathlib.Path(__file__).resolve().parent
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}

for script in sorted(SCRIPTS.glob("*.py")):
    if script != pathlib.Path(__file__).resolve():
        done = subprocess.run(
            [sys.executable, script], cwd=SCRIPTS.parents[2], env={**os.environ, **QUIET}, stdout=subprocess.PIPE
        )
        if done.returncode:
            sys.exit(f"{script.name} failed with TensorFlow")
        script.with_suffix(".txt").write_bytes(done.stdout)
        print(script.name)
