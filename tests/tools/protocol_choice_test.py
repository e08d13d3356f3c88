#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo with its protocol set once, in each place where it can be set."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PENSTOCK = None
BOUND = 100  # seconds; only a broken program comes near it
PROTOCOLS = ["shm", "tcp", "grpc"]
NICS = pathlib.Path("/sys/class/infiniband")


class ProtocolChoiceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.config = pathlib.Path(folder.name) / "penstock.toml"

    def demo(self, *args, env=None):
        """Runs a short demo; returns (exit code, its output)."""
        # ucx over tcp, since the test machines have no NIC.
        lanes = {} if "PENSTOCK_UCX_LANES" in (env or {}) else {"PENSTOCK_UCX_LANES": "tcp"}
        done = subprocess.run([PENSTOCK, "demo", "--kill", "none", "--epochs", "1", "--step-ms", "0",
                               "--accuracy", "0.2", *args], capture_output=True, text=True, timeout=BOUND,
                              env={**os.environ, **lanes, **(env or {})}, check=False)
        return done.returncode, done.stdout + done.stderr

    def assert_links(self, reason, *args, env=None):
        """The demo ends well, and all its links use one protocol for this reason."""
        code, said = self.demo(*args, env=env)
        self.assertEqual(code, 0, said)
        self.assertIn("demo: ok", said)
        self.assertRegex(said, "lost=0 doubled=0")
        self.assertEqual(re.findall(r"links over (.*)", said), [reason], said)

    def test_by_option(self):
        for protocol in PROTOCOLS:
            with self.subTest(protocol):
                self.assert_links(f"{protocol}: DistributeOptions", "--protocol", protocol)

    def test_by_the_workers_config(self):
        for protocol in PROTOCOLS:
            with self.subTest(protocol):
                self.assert_links(f"{protocol}: the worker's data_transfer_protocol",
                                  "--worker-protocol", protocol)

    def test_by_the_environment(self):
        for protocol in PROTOCOLS:
            with self.subTest(protocol):
                self.assert_links(f"{protocol}: PENSTOCK_DATA_TRANSFER_PROTOCOL",
                                  env={"PENSTOCK_DATA_TRANSFER_PROTOCOL": protocol})

    def test_by_the_settings_file(self):
        for protocol in PROTOCOLS:
            with self.subTest(protocol):
                self.config.write_text(f'# of trainers\n[client]\ndata_transfer_protocol = "{protocol}"\n')
                self.assert_links(f"{protocol}: {self.config}:3", env={"PENSTOCK_CONFIG": str(self.config)})

    def test_by_nobody(self):
        code, said = self.demo()
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"links over shm: local cannot be used \(.*\)")

    def test_a_named_protocol_that_is_not_possible_fails_in_words(self):
        code, said = self.demo("--protocol", "carrier_pigeon")
        self.assertEqual(code, 1)
        self.assertRegex(said, r"Protocol 'carrier_pigeon' is not available for worker 'localhost:\d+': "
                         ".*not in this build")

    def test_a_fallback_ends_well(self):
        code, said = self.demo("--protocol", "carrier_pigeon", "--fallback", "tcp")
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"links over tcp: carrier_pigeon \(DistributeOptions\) cannot be used \(.*\)")


    @unittest.skipIf(NICS.exists() and any(NICS.iterdir()), "this machine has a NIC")
    def test_ucx_without_a_nic_fails_in_words_unless_there_is_a_fallback(self):
        rdma = {"PENSTOCK_UCX_LANES": "rdma"}
        code, said = self.demo("--protocol", "ucx", env=rdma)
        self.assertEqual(code, 1)
        self.assertRegex(said, r"Protocol 'ucx' is not available for worker 'localhost:\d+': ")
        code, said = self.demo("--protocol", "ucx", "--fallback", "tcp", env=rdma)
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"links over tcp: ucx \(DistributeOptions\) cannot be used \(.*\)")


if __name__ == "__main__":
    PENSTOCK = sys.argv.pop(1)
    if (pathlib.Path(PENSTOCK).resolve().parents[1] / "lib/penstock/libpenstock_ucx.so").exists():
        PROTOCOLS.append("ucx")
    unittest.main()
