# SPDX-License-Identifier: Apache-2.0
"""One virtual machine with one software RDMA device that talks to itself."""
import re
import subprocess
import unittest

import machine
import workers


def setUpModule():
    machine.make_device("dummy0", 1)


class Device(unittest.TestCase):
    """Compares our description of a real device with that of libibverbs' own tool."""

    def test_doctor_agrees_with_ibv_devinfo(self):
        said = machine.run("ibv_devinfo", "-v", "-d", machine.DEVICE)
        device = machine.doctor_device()
        self.assertIsNone(device["error"])
        self.assertEqual(device["firmware"], re.search(r"fw_ver:\s*(\S*)", said)[1])
        (port,) = device["ports"]
        self.assertEqual(port["port"], int(re.search(r"port:\s+(\d+)", said)[1]))
        self.assertEqual(port["state"], re.search(r"state:\s+PORT_(\w+)", said)[1].lower())
        self.assertEqual(port["link_layer"], re.search(r"link_layer:\s+(\w+)", said)[1].lower())
        self.assertEqual(port["active_mtu"], int(re.search(r"active_mtu:\s+(\d+)", said)[1]))
        self.assertEqual(port["max_mtu"], int(re.search(r"max_mtu:\s+(\d+)", said)[1]))
        gids = re.findall(r"GID\[\s*(\d+)\]:\s+(\S+), (RoCE v\d)", said)
        self.assertEqual([(str(gid["index"]), gid["address"], gid["type"]) for gid in port["gids"]],
                         [(index, address, kind.lower().replace(" ", "_")) for index, address, kind in gids])
        self.assertIn("fd00:1::1", [gid["address"] for gid in port["gids"]])

    def test_port_events_are_seen(self):
        # A port that goes down loses its IPv6 address, and with it the GID.
        self.addCleanup(machine.gid_index, "fd00:1::1")
        self.addCleanup(machine.ip, "-6", "addr", "replace", "fd00:1::1/64", "dev", "dummy0", "nodad")
        machine.run(machine.PENSTOCK / "tests/verbs_real_device", machine.DEVICE, "dummy0", "/usr/sbin/ip")

    def test_reliable_connections_go_through_the_device(self):
        index = machine.gid_index("fd00:1::1")
        command = ["ibv_rc_pingpong", "-d", machine.DEVICE, "-g", str(index), "-n", "50"]
        with machine.traffic(self), subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
            machine.wait_for("listening server", lambda: machine.listening(18515))
            machine.run(*command, "localhost")
            self.assertEqual(server.wait(timeout=machine.BOUND), 0)


@unittest.skipUnless(machine.WITH_UCX, "built without UCX")
class Ucx(unittest.TestCase):
    """The protocol `ucx` over reliable connections of the device, in real slots."""

    def suite(self, program, only):
        with machine.traffic(self):
            said = machine.run(machine.PENSTOCK / "tests" / program, f"--gtest_filter={only}")
        print(said[-2000:])
        self.assertRegex(said, r"\[  PASSED  \] [1-9]\d* tests?\.")

    def test_the_suite_of_all_transports(self):
        self.suite("transfer_ucx_test", "-*256MiB*")

    def test_elements_lie_in_registered_slots_and_are_not_copied(self):
        cluster = workers.Workers("localhost", 1)
        self.addCleanup(cluster.stop)
        with machine.traffic(self):
            machine.run(machine.PENSTOCK / "tests/slots_trainer", cluster.service, 64, 128 << 10)


if __name__ == "__main__":
    machine.main()
