#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`penstock bench cluster` between two hosts, launched as srun does, and from one of them over IPv6;
and between all of three.

    cluster_bench_test.py BIN [unittest arguments]

Ends with 77, which CTest shows as skipped, where namespaces are not permitted.
"""
import contextlib
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
BOUND = 240  # seconds; only a broken program comes near it
RATE = 2e9 / 8  # bytes a second over the cable
LEVELS = "socket,iperf3,ib_read_bw,ib_write_bw,ucx_perftest,tcp,grpc,ucx"
BIN = None


def command(*args):
    return (BIN / "penstock", "bench", "cluster", "--level", LEVELS, "--size", 1 << 20, "--pairs", 2, "--window", 0.5,
            *args)


def start(prefix, args, variables):
    words = [str(word) for word in (*prefix, *command(*args))]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "PENSTOCK_UCX_LANES": "tcp", **variables})


def write_shell(folder, inside):
    """Writes a program like ssh that runs a command on a host; its arguments are the host, then the command. `inside`
    uses the address in $host."""
    shell = pathlib.Path(folder, "shell")
    shell.write_text(f'#!/bin/sh\nhost=$1\nshift\nexec {" ".join(inside)} "$@"\n')
    shell.chmod(0o700)
    return shell


class ClusterBench(unittest.TestCase):
    def setUp(self):
        self.enterContext(hosts.two_hosts("2gbit"))

    def rows(self, out):
        """Returns the summaries by (system, protocol, variant, limit)."""
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
            if key[0] in ("socket", "penstock"):  # all bytes pass the cable; some may still be queued
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
            shell = write_shell(folder, hosts.inside("workers"))
            with start(hosts.inside("trainer"),
                       ("--json", "-", "--hosts", f"{hosts.TRAINER_IPV6},{hosts.WORKERS_IPV6}", "--remote-shell", shell),
                       {}) as leader:
                out, errors = leader.communicate(timeout=BOUND)
        self.assertEqual(leader.returncode, 0, errors)
        self.check(out)


class AllPairs(unittest.TestCase):
    """Three hosts; "b" sends slowly."""

    LITTLE = 4 * 300e6 / 8  # bytes a second: far above its cable's 300 Mb/s, far below the others'

    def setUp(self):
        self.network = self.enterContext(hosts.Network())
        self.addresses = [self.network.add(host) for host in "abc"]
        hosts.run(*self.network.inside("b", "tc", "qdisc", "add", "dev", "cable", "root", "tbf", "rate", "300mbit",
                                       "burst", "1mb", "latency", "20ms"))

    def command(self, host, level, *args):
        words = self.network.inside(host, BIN / "penstock", "bench", "cluster", "--quick", "--level", level, *args)
        return [str(word) for word in words]

    def check(self, out, said):
        rates = {}
        for line in map(json.loads, out.splitlines()):
            if line.get("summary") and line["workload"] == "pair":
                self.assertIsNotNone(line["gb_per_s"], line)
                reader, sender = line["hosts"]
                rates[sender, reader] = max(line["gb_per_s"] * 1e9, rates.get((sender, reader), 0))
        self.assertEqual(rates.keys(), {(one, other) for one in self.addresses for other in self.addresses if one != other})
        for (sender, _), rate in rates.items():
            (self.assertLess if sender == self.addresses[1] else self.assertGreater)(rate, self.LITTLE, rates)
        self.assertRegex(said, rf"\nslowest: {self.addresses[1]} to \S+, \S+ GB/s; the median is \S+ GB/s\n")

    def test_by_agents_that_a_shell_starts(self):
        with tempfile.TemporaryDirectory() as folder:
            number = "$(echo $host | cut -d. -f3)"  # 10.78.N.1 is the address of host N
            shell = write_shell(folder, ("ip", "netns", "exec", f"{self.network.name}-{number}"))
            done = subprocess.run(self.command("a", "socket", "--all-pairs", "--json", "-", "--hosts", ",".join(self.addresses),
                                               "--remote-shell", shell),
                                  capture_output=True, text=True, timeout=BOUND, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check(done.stdout, done.stderr)

    def test_by_ranks(self):
        ranks = ("--ranks", 3, "--leader", f"{self.addresses[0]}:7000")
        with contextlib.ExitStack() as others:
            for rank, host in ((1, "b"), (2, "c")):
                others.enter_context(subprocess.Popen(self.command(host, "grpc", *ranks, "--rank", rank)))
            done = subprocess.run(self.command("a", "grpc", *ranks, "--rank", 0, "--all-pairs", "--json", "-"),
                                  capture_output=True, text=True, timeout=BOUND, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check(done.stdout, done.stderr)


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    try:
        hosts.check_permitted()
    except hosts.NotPermitted as why:
        print(f"cluster_bench: left out: {why}")
        sys.exit(SKIPPED)
    unittest.main(warnings="ignore")  # about pipes that the interpreter closes at its end
