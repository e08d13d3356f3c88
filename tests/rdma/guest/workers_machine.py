# SPDX-License-Identifier: Apache-2.0
"""The first of two virtual machines: workers that obey trainer_machine.py.

Orders come as lines of JSON over one TCP connection, and each is answered with one line.
"""
import json
import pathlib
import socketserver

import machine
import workers

HOST = "10.1.0.1"
ORDERS_PORT = 9000


class Orders(socketserver.StreamRequestHandler):
    """The connection of the other machine, which ends with its tests."""

    def handle(self):
        for line in self.rfile:
            try:
                answer = getattr(self, json.loads(line)["do"])()
            except Exception as failure:  # sent to the other machine, whose test fails
                answer = {"error": str(failure)}
            self.wfile.write(json.dumps(answer).encode() + b"\n")

    def start(self):
        """Starts a dispatcher and two workers."""
        self.cluster = workers.Workers(HOST, 2)
        return {"service": self.cluster.service, "metrics": self.cluster.metrics}

    def replace_one(self):
        """Kills one worker with kill -9 and starts another."""
        self.cluster.kill_one()
        self.cluster.start_worker()
        return {}

    def stop(self):
        self.cluster.stop()
        return {}

    def packets(self):
        return {"packets": machine.packets()}


def main():
    machine.make_device("eth0", 1)
    pathlib.Path(machine.DATA).mkdir()
    machine.run(machine.PENSTOCK / "bin/digits_make_shards", machine.PENSTOCK / "examples/digits.csv", machine.DATA, 11)
    with socketserver.TCPServer((HOST, ORDERS_PORT), Orders) as server:
        server.handle_request()
    print("scene: ended well", flush=True)


if __name__ == "__main__":
    main()
