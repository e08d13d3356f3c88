# SPDX-License-Identifier: Apache-2.0
"""The second of two virtual machines: trainers that read from the workers of workers_machine.py."""
import json
import re
import socket
import subprocess
import unittest

import machine
import workers_machine

ORDERS = None


class Orders:
    """Orders to the other machine."""

    def __init__(self):
        def connect():
            try:
                return socket.create_connection((workers_machine.HOST, workers_machine.ORDERS_PORT), timeout=2)
            except OSError:
                return None
        self.socket = machine.wait_for("workers' machine", connect)
        self.socket.settimeout(machine.BOUND)
        self.answers = self.socket.makefile()

    def __call__(self, order):
        self.socket.sendall(json.dumps({"do": order}).encode() + b"\n")
        answer = json.loads(self.answers.readline())
        if "error" in answer:
            raise AssertionError(f"{order} on the workers' machine: {answer['error']}")
        return answer


def setUpModule():
    global ORDERS
    machine.make_device("eth0", 2)
    ORDERS = Orders()


class TwoMachines(unittest.TestCase):
    def start(self):
        cluster = ORDERS("start")
        self.addCleanup(ORDERS, "stop")
        return cluster

    def demo(self, protocol):
        """The demo's trainers, which lose a worker when they have read a quarter."""
        cluster = self.start()
        command = ["python3", "-u", machine.PENSTOCK / "examples/demo.py", "--bin", machine.PENSTOCK / "bin",
                   "--dispatcher", cluster["service"], "--workers", ",".join(cluster["metrics"]),
                   "--data", machine.DATA, "--protocol", protocol, "--epochs", "2", "--accuracy", "0.5"]
        replaced = False
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
            for line in demo.stdout:
                print(line, end="", flush=True)
                rows = re.match(r" *(\d+) of (\d+) rows", line)
                if rows and not replaced and int(rows[1]) * 4 > int(rows[2]):
                    ORDERS("replace_one")
                    replaced = True
        self.assertTrue(replaced)
        self.assertRegex(line, r"^demo: ok .* lost=0 doubled=0 ")

    @unittest.skipIf(machine.WITH_UCX, "over ucx instead")
    def test_the_demo_over_tcp(self):
        self.demo("tcp")

    @unittest.skipUnless(machine.WITH_UCX, "built without UCX")
    def test_the_demo_over_ucx(self):
        before = ORDERS("packets")["packets"]
        with machine.traffic(self):
            self.demo("ucx")
        self.assertGreater(ORDERS("packets")["packets"], before)

    @unittest.skipUnless(machine.WITH_UCX, "built without UCX")
    def test_elements_lie_in_registered_slots_and_are_not_copied(self):
        with machine.traffic(self):
            machine.run(machine.PENSTOCK / "tests/slots_trainer", self.start()["service"], 32, 128 << 10)


if __name__ == "__main__":
    machine.main()
