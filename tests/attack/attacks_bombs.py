# SPDX-License-Identifier: Apache-2.0
"""Jobs of strangers whose files and values become huge on the worker (bombs.py)."""
import pathlib
import subprocess
import sys

from attacking import attack
from bombs import BOMBS, BUFFERS

SECONDS = 20  # for one bomb


@attack("grpc", owner="dispatcher", bound_mib=256)
def bombs(run):
    """Reads every bomb once, and again until the time is over. 256 MiB: an element and a pipeline of 64 MiB each, and copies."""
    _read_all(run, BOMBS)


@attack("grpc", owner="dispatcher", bound_mib=256)
def large_buffers(run):
    """Reads datasets that keep 1 GiB of elements, on workers whose pipelines may hold 64 MiB."""
    _read_all(run, BUFFERS)


def _read_all(run, names):
    folder = run.folder / "bombs"
    folder.mkdir(exist_ok=True)
    program = pathlib.Path(__file__).parent / "bombs.py"
    command = [sys.executable, program, *names, "--service", f"grpc://{run.port.address}", "--folder", folder]
    while run.connections == 0 or not run.over():
        with open(run.folder / "bombs.log", "ab") as log:
            subprocess.run(command, stdout=log, stderr=log, timeout=SECONDS * len(names), check=True)
        run.connections += len(names)
