# SPDX-License-Identifier: Apache-2.0
"""The common parts of the scenes: commands, the software RDMA device, its counters."""
import contextlib
import ipaddress
import json
import os
import pathlib
import subprocess
import time
import unittest

PENSTOCK = pathlib.Path("/penstock")
WITH_UCX = (PENSTOCK / "tests/slots_trainer").exists()  # built where UCX's headers are
DATA = "/tmp/data"  # the shards of the demo, the same on all machines
DEVICE = "rxe0"
PORT = pathlib.Path(f"/sys/class/infiniband/{DEVICE}/ports/1")
BOUND = 240  # seconds; only a broken program comes near it


def run(*command, env=None, check=True):
    """Runs the command to its end; returns its output, and prints it on failure."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=BOUND,
                          env={**os.environ, **(env or {})}, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def ip(*words):
    # The shell's own `ip` has neither veth nor rules, so the path is given.
    return run("/usr/sbin/ip", *words)


def wait_for(what, condition):
    """Waits for the first true value of `condition()` and returns it."""
    deadline = time.monotonic() + BOUND
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"no {what} after {BOUND} s")


def listening(port):
    """Returns whether a process here listens on that TCP port."""
    files = [pathlib.Path("/proc/net") / name for name in ("tcp", "tcp6")]
    return any(f":{port:04X} " in file.read_text() for file in files)


def gid_index(address):
    """Waits for that address in the port's table; returns its index."""
    wanted = ipaddress.ip_address(address).exploded

    def find():
        for file in (PORT / "gids").iterdir():
            if file.read_text().strip() == wanted:
                return file.name
        return None
    return int(wait_for(f"GID {address}", find))


def make_device(interface, host):
    """Makes a software device on that network interface, with the GID fd00:1::HOST for UCX.

    UCX 1.13 loses the datagrams of a software device that go to an IPv4 address.
    """
    ip("link", "set", interface, "mtu", 9000)  # so that the largest path MTU, 4096, fits in
    ip("addr", "add", f"10.1.0.{host}/24", "dev", interface)
    ip("-6", "addr", "add", f"fd00:1::{host}/64", "dev", interface, "nodad")
    ip("link", "set", interface, "up")
    run("rdma", "link", "add", DEVICE, "type", "rxe", "netdev", interface)
    os.environ["UCX_IB_GID_INDEX"] = str(gid_index(f"fd00:1::{host}"))


def packets():
    """Returns (sent, received) packets of the device since it was made."""
    counters = PORT / "hw_counters"
    return tuple(int((counters / name).read_text()) for name in ("sent_pkts", "rcvd_pkts"))


@contextlib.contextmanager
def traffic(test):
    """Fails the test unless the device sends and receives inside the block: nothing else may pass for RDMA."""
    before = packets()
    yield
    after = packets()
    print(f"device: {after[0] - before[0]} packets sent, {after[1] - before[1]} received", flush=True)
    test.assertGreater(after[0], before[0])
    test.assertGreater(after[1], before[1])


def doctor_device():
    """Returns the entry for the device in the output of `penstock doctor`."""
    said = json.loads(run(PENSTOCK / "bin/penstock", "doctor", "--json", check=False))
    (device,) = (device for device in said["rdma_devices"] if device["name"] == DEVICE)
    return device


def demo(test, protocol, *options):
    """Fails the test unless the demo ends well and has killed its victim."""
    said = run("python3", PENSTOCK / "examples/demo.py", "--bin", PENSTOCK / "bin", "--protocol", protocol, *options)
    print(said, flush=True)
    test.assertRegex(said, r"demo: ok .* lost=0 doubled=0 ")
    test.assertNotIn("before a process was killed", said)


def main():
    """Runs the tests of the calling program; none at all is a failure."""
    program = unittest.main(exit=False, failfast=False)
    ran = program.result.testsRun
    if ran == 0 or not program.result.wasSuccessful():
        raise SystemExit(1)
    print("scene: ended well", flush=True)
