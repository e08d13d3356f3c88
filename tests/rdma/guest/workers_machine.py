# SPDX-License-Identifier: Apache-2.0
"""The first of two virtual machines: a dispatcher and two workers, which obey trainer_machine.py.

Orders come as lines over TCP, and each is answered by a line of JSON.
"""
import json
import os
import pathlib
import socketserver
import tempfile

import machine
from processes import Process

HOST = "10.1.0.1"
ORDERS_PORT = 9000


class Workers:
    def __init__(self, folder):
        self.folder, self.workers, self.dispatcher, self.service = folder, [], None, None

    def start(self, environment):
        """A new dispatcher and two workers; the address of the service and of the workers' metrics."""
        os.environ.update(environment)
        machine.run(machine.PENSTOCK / "bin/digits_make_shards", machine.PENSTOCK / "examples/digits.csv",
                    machine.DATA, 11)
        self.dispatcher = Process(self.folder, "dispatcher", [
            machine.PENSTOCK / "bin/penstock", "dispatcher", "--host", HOST, "--port", 0, "--worker-timeout-ms", 4000])
        port = self.dispatcher.wait_until_ready(r"ready at \S+:(\d+)", machine.BOUND)[1]
        self.service = f"grpc://{HOST}:{port}"
        return {"service": self.service, "metrics": [self.start_worker(), self.start_worker()]}

    def start_worker(self):
        name = f"worker-{len(list(self.folder.glob('worker-*')))}"
        worker = Process(self.folder, name, [
            machine.PENSTOCK / "bin/penstock", "worker", "--dispatcher-address", self.service, "--host", HOST,
            "--port", 0, "--metrics-port", 0])
        port = worker.wait_until_ready(r"metrics at http://\S+:(\d+)/metrics", machine.BOUND)[1]
        self.workers.append(worker)
        return f"{HOST}:{port}"

    def kill(self):
        """Kills one worker -9 and starts another."""
        self.workers.pop(0).kill()
        return {"metrics": self.start_worker()}

    def stop(self):
        for process in (*self.workers, self.dispatcher):
            process.stop()
        for file in sorted(self.folder.glob("*.out")):
            print(f"--- {file.name}\n{file.read_text()[-3000:]}", flush=True)
            file.unlink()
        self.workers = []
        return {}


class Orders(socketserver.StreamRequestHandler):
    """One connection for the whole run; it ends with the other machine's tests."""

    def handle(self):
        for line in self.rfile:
            order = json.loads(line)
            try:
                answer = getattr(self.server.workers, order["do"])(*order.get("with", []))
            except Exception as failure:  # told to the one who asked, which fails its test
                answer = {"error": str(failure)}
            self.wfile.write(json.dumps(answer).encode() + b"\n")


def main():
    machine.make_device("eth0", 1)
    pathlib.Path(machine.DATA).mkdir()
    with tempfile.TemporaryDirectory() as folder, \
            socketserver.TCPServer((HOST, ORDERS_PORT), Orders) as server:
        server.workers = Workers(pathlib.Path(folder))
        server.handle_request()
    sent, received = machine.packets()
    print(f"device: {sent} packets sent, {received} received")
    print("scene: ended well", flush=True)


if __name__ == "__main__":
    main()
