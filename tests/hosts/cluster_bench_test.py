#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`penstock bench cluster` between two hosts, launched as srun does, and from one of them over IPv6.

    cluster_bench_test.py BIN [unittest arguments]

Ends with 77, which CTest shows as skipped, where namespaces are not permitted.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import hosts

SKIPPED = 77
BOUND = 240  # seconds; only what is broken comes near it
RATE = 2e9 / 8  # bytes a second that the cable lets through
LEVELS = "socket,iperf3,ib_read_bw,ib_write_bw,ucx_perftest,tcp,grpc,ucx"
BIN = None


def command(*args):
    return (BIN / "penstock", "bench", "cluster", "--level", LEVELS, "--size", 1 << 20, "--pairs", 2, "--window", 0.5,
            *args)


def start(prefix, args, variables):
    words = [str(word) for word in (*prefix, *command(*args))]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "PENSTOCK_UCX_LANES": "tcp", **variables})


class ClusterBench(unittest.TestCase):
    def setUp(self):
        self.enterContext(hosts.two_hosts("2gbit"))

    def rows(self, out):
        """The summaries by (system, protocol, variant, limit)."""
        lines = [json.loads(line) for line in out.splitlines()]
        return {(line["system"], line["protocol"], line["variant"], line["limit"]): line
                for line in lines if line.get("summary") and line["workload"] == "link"}

    def check(self, out):
        rows = self.rows(out)
        for row in rows.values():
            if row["system"] != "all" and row["element_bytes"] == 0:
                self.assertIn("note", row)  # left out, with its reason
        print("\n".join(f"{key}: {row['gb_per_s']} {row.get('note', '')}" for key, row in rows.items()), flush=True)
        measured = {key: row["gb_per_s"] * 1e9 for key, row in rows.items() if row["gb_per_s"]}
        streams = [rate for key, rate in measured.items() if key[0] == "socket"]
        self.assertGreaterEqual(len(streams), 3)
        for key, rate in measured.items():
            self.assertGreater(rate, 0)
            if key[0] in ("socket", "penstock"):  # nothing goes past the cable; what is queued in it may
                self.assertLess(rate, 1.5 * RATE, key)
        machines = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
        self.assertIn(("penstock", "tcp", "", f"socket {machines} x1"), measured)
        self.assertIn(("penstock", "tcp", "x4", "socket cubic x4"), measured)
        for program in ("ib_read_bw", "ib_write_bw"):
            self.assertRegex(rows[program, "", "", ""]["note"],
                             "no RDMA device|the hosts' RDMA|is not installed")
        for key, row in rows.items():
            if key[1] == "ucx" and row["gb_per_s"]:
                self.assertTrue(row["lanes"], key)
                self.assertTrue(all(lane.startswith("tcp/") for lane in row["lanes"]), row["lanes"])
        if shutil.which("iperf3"):
            self.assertIn(("iperf3", "", "cubic x4", ""), measured)
        else:
            self.assertIn("iperf3 is not installed on", rows["iperf3", "", "cubic x4", ""]["note"])
        if shutil.which("ucx_perftest"):
            self.assertTrue([key for key in measured if key[:3] == ("ucx_perftest", "ucp_am_bw", "tcp")])

    def test_as_srun_starts_it(self):
        variables = {"SLURM_NTASKS": "2", "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0",
                     "SLURM_STEP_NODELIST": hosts.TRAINER}
        of_rank = {rank: {**variables, "SLURM_PROCID": str(rank), "SLURM_NODEID": str(rank)} for rank in (0, 1)}
        with start(hosts.inside("workers"), (), of_rank[1]) as other, \
                start(hosts.inside("trainer"), ("--json", "-"), of_rank[0]) as leader:
            out, errors = leader.communicate(timeout=BOUND)
            other_said = other.communicate(timeout=BOUND)
        self.assertEqual((leader.returncode, other.returncode), (0, 0), errors + str(other_said))
        self.check(out)

    def test_from_one_host_by_a_shell_over_ipv6(self):
        with tempfile.TemporaryDirectory() as folder:
            shell = pathlib.Path(folder, "shell")  # as ssh: a host, then the command
            shell.write_text(f'#!/bin/sh\nshift\nexec {" ".join(hosts.inside("workers"))} "$@"\n')
            shell.chmod(0o700)
            with start(hosts.inside("trainer"),
                       ("--json", "-", "--hosts", f"{hosts.TRAINER_IPV6},{hosts.WORKERS_IPV6}", "--remote-shell", shell),
                       {}) as leader:
                out, errors = leader.communicate(timeout=BOUND)
        self.assertEqual(leader.returncode, 0, errors)
        self.check(out)


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    try:
        hosts.check_permitted()
    except hosts.NotPermitted as why:
        print(f"cluster_bench: left out: {why}")
        sys.exit(SKIPPED)
    unittest.main(warnings="ignore")  # of pipes that the interpreter closes at its end
