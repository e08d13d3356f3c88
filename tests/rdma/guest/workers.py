# SPDX-License-Identifier: Apache-2.0
"""A dispatcher and its workers as processes."""
import pathlib
import tempfile

import machine
from processes import Process


class Workers:
    """A new dispatcher at `service` with `count` workers; `metrics` are the addresses of their metrics."""

    def __init__(self, host, count):
        self.host = host
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-workers-"))
        self.workers, self.metrics = [], []
        self.dispatcher = self.start("dispatcher", "--worker-timeout-ms", 4000)
        self.service = f"grpc://{host}:{self.dispatcher.wait_until_ready(r'ready at [^ ]*:([0-9]+)', machine.BOUND)[1]}"
        for _ in range(count):
            self.start_worker()

    def start(self, role, *options):
        name = f"{role}-{len(list(self.folder.iterdir()))}"
        return Process(self.folder, name, [machine.PENSTOCK / "bin/penstock", role, "--host", self.host, "--port", 0,
                                           *options])

    def start_worker(self):
        """Starts a worker; returns the address of its metrics."""
        worker = self.start("worker", "--dispatcher-address", self.service, "--metrics-port", 0,
                            "--files-allow", "/")
        port = worker.wait_until_ready(r"metrics at http://\S+:(\d+)/metrics", machine.BOUND)[1]
        self.workers.append(worker)
        self.metrics.append(f"{self.host}:{port}")

    def kill_one(self):
        self.workers.pop(0).kill()

    def stop(self):
        """Ends them, and prints their output."""
        for process in (*self.workers, self.dispatcher):
            process.stop()
        for file in sorted(self.folder.iterdir()):
            print(f"--- {file.name}\n{file.read_text()[-2000:]}", flush=True)
