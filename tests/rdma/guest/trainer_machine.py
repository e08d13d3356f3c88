# SPDX-License-Identifier: Apache-2.0
"""The second of two virtual machines: trainers that read from the workers of workers_machine.py."""
import json
import os
import re
import socket
import subprocess
import unittest

import machine
import workers_machine

ORDERS = None


class Orders:
    """What the other machine is told to do."""

    def __init__(self):
        def connect():
            try:
                return socket.create_connection((workers_machine.HOST, workers_machine.ORDERS_PORT), timeout=2)
            except OSError:
                return None
        self.socket = machine.wait_for("workers' machine", connect)
        self.socket.settimeout(machine.BOUND)
        self.answers = self.socket.makefile()

    def __call__(self, order, *words):
        self.socket.sendall(json.dumps({"do": order, "with": words}).encode() + b"\n")
        answer = json.loads(self.answers.readline())
        if "error" in answer:
            raise AssertionError(f"{order} on the workers' machine: {answer['error']}")
        return answer


def setUpModule():
    global ORDERS
    machine.make_device("eth0", 2)
    ORDERS = Orders()


class Demo(unittest.TestCase):
    """The demo, its workers on another machine, one of them killed."""

    def run_demo(self, protocol, environment):
        cluster = ORDERS("start", environment)
        self.addCleanup(ORDERS, "stop")
        demo = subprocess.Popen(
            ["python3", "-u", machine.PENSTOCK / "examples/demo.py", "--bin", machine.PENSTOCK / "bin",
             "--dispatcher", cluster["service"], "--workers", ",".join(cluster["metrics"]), "--data", machine.DATA,
             "--protocol", protocol, "--epochs", "4", "--accuracy", "0.7"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **environment})
        with demo:
            self.addCleanup(demo.kill)
            killed = False
            for line in demo.stdout:
                print(line, end="", flush=True)
                rows = re.match(r" *(\d+) of (\d+) rows", line)
                if rows and not killed and int(rows[1]) * 4 > int(rows[2]):
                    ORDERS("kill")
                    killed = True
        self.assertTrue(killed)
        self.assertRegex(line, r"^demo: ok .* lost=0 doubled=0 ")

    def test_over_tcp(self):
        self.run_demo("tcp", {})


if __name__ == "__main__":
    machine.main()
