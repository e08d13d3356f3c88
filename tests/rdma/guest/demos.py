# SPDX-License-Identifier: Apache-2.0
"""The demo while a process dies, in one virtual machine: over its RDMA device, and over a network that loses
packets."""
import re
import unittest

import machine


def setUpModule():
    machine.make_device("dummy0", 1)


@unittest.skipUnless(machine.WITH_UCX, "built without UCX")
class Ucx(unittest.TestCase):
    def test_with_a_killed_worker(self):
        with machine.traffic(self):
            machine.demo(self, "ucx", "--kill", "worker", "--kill-at", 0.3, "--epochs", 2, "--accuracy", 0.5)

    def test_with_a_trainer_killed_when_an_element_was_received(self):
        with machine.traffic(self):
            machine.demo(self, "ucx", "--kill", "trainer", "--fail-point", "land_before_ack:30", "--epochs", 2,
                         "--accuracy", 0.5)


class RoughNetwork(unittest.TestCase):
    """Delay, loss and reordering, which need a kernel with netem."""

    def test_tcp_with_a_killed_worker(self):
        machine.run("/usr/sbin/tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "5ms", "loss", "1%",
                    "reorder", "25%", "50%")
        self.addCleanup(machine.run, "/usr/sbin/tc", "qdisc", "del", "dev", "lo", "root")
        machine.demo(self, "tcp", "--kill", "worker", "--kill-at", 0.3, "--epochs", 2, "--accuracy", 0.5)
        dropped = re.search(r"dropped (\d+)", machine.run("/usr/sbin/tc", "-s", "qdisc", "show", "dev", "lo"))
        self.assertGreater(int(dropped[1]), 0)


if __name__ == "__main__":
    machine.main()
