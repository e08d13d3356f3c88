# SPDX-License-Identifier: Apache-2.0
"""A dispatcher or worker of a peer: a process that runs the peer's own script."""
from __future__ import annotations

import subprocess
import sys


class Server:
    """Runs `script` with `--role` and `--dispatcher`. The script prints one line when it is ready, which is kept in `said`,
    and ends when its input ends, so also when the consumer is killed."""

    def __init__(self, script: str, role: str, dispatcher: str = ""):
        self._process = subprocess.Popen([sys.executable, script, "--role", role, "--dispatcher", dispatcher],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        self.said = self._process.stdout.readline().strip()
        if not self.said:
            raise RuntimeError(f"the {role} ended before it was ready")

    def stop(self) -> None:
        self._process.stdin.close()
        self._process.wait()
