# SPDX-License-Identifier: Apache-2.0
"""The demo's processes: starts them, kills them and reads their progress."""
import http.client
import os
import re
import signal
import subprocess
import time
import urllib.request


class DemoFailed(Exception):
    """Ends the demo, with the reason."""


class Process:
    """A child process with its output in a file. It can be restarted under the same name."""

    def __init__(self, folder, name, command, env=None):
        self.name, self.command = name, [str(word) for word in command]
        self.out = folder / f"{name}.out"
        self.child = None
        self.start(env)

    def start(self, env=None):
        with open(self.out, "ab") as out:
            self.child = subprocess.Popen(self.command, stdout=out, stderr=subprocess.STDOUT,
                                          env={**os.environ, **(env or {})})

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()

    def stop(self):
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.kill()

    def wait_until_ready(self, line, seconds=30):
        """Returns the first match of the regular expression in its output."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := re.search(line, self.out.read_text()):
                return found
            if self.child.poll() is not None:
                raise DemoFailed(f"{self.name} ended before it was ready:\n{self.out.read_text()}")
            time.sleep(0.02)
        raise DemoFailed(f"{self.name} was not ready after {seconds} s:\n{self.out.read_text()}")


class ReceivedCount:
    """The number of a worker's elements that clients received, from its /metrics page."""

    def __init__(self, address):
        self.url = f"http://{address}/metrics"
        self.direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self.last = 0

    def ask(self):
        """Returns the number; the last known one if the worker does not answer."""
        try:
            page = self.direct.open(self.url, timeout=0.2).read().decode()
        except (OSError, http.client.HTTPException):  # dead or too busy
            return self.last
        if found := re.search(r"^penstock_worker_elements_landed_total (\d+)", page, re.MULTILINE):
            self.last = int(found[1])
        return self.last
