#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`penstock bench` as people and machines use it: real processes, windows too short to mean anything.

    bench_test.py PENSTOCK [unittest arguments]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PENSTOCK = None
BOUND = 120  # seconds; only a broken program comes near it
SHORT = ("--window", "0.05", "--pairs", "2", "--source-mib", "8")

IN_EACH = {"v", "workload", "system", "version", "protocol", "element_bytes", "workers", "consumers", "limit"}
IN_WINDOWS = IN_EACH | {
    "run", "seconds", "elements", "elements_per_s", "gb_per_s", "p50_us", "p99_us", "max_us", "cpu_s_per_gb",
    "cpu_s_per_gb_by_role", "trainer_cpu_s_per_gb", "rss_mb", "foreign_cores", "limit_gb_per_s", "ratio", "clean"}
IN_SUMMARIES = IN_EACH | {"summary", "ratio", "worst_ratio", "pairs", "clean_pairs"}


def run(*args, **kwargs):
    """Runs to its end; (exit code, stdout, stderr)."""
    done = subprocess.run([PENSTOCK, "bench", *args], capture_output=True, text=True, timeout=BOUND, check=False,
                          **kwargs)
    return done.returncode, done.stdout, done.stderr


def records(text):
    """The machine's line, those of windows, and the summaries."""
    lines = [json.loads(line) for line in text.splitlines()]
    return (lines[0], [line for line in lines[1:] if "summary" not in line],
            [line for line in lines[1:] if "summary" in line])


class Bench(unittest.TestCase):
    def test_measures_each_protocol_beside_its_limit(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "bench.jsonl")
            code, out, err = run("T1", "T1-0", "Range", "--protocol", "local,shm,tcp,grpc", "--size", "65536", *SHORT,
                                 "--json", str(file))
            self.assertEqual(code, 0, err)
            machine, windows, summaries = records(file.read_text())
        self.assertEqual(machine["workload"], "machine")
        self.assertGreater(machine["cores"], 0)
        self.assertEqual(len(summaries), 12)
        self.assertEqual(len(windows), 24)
        for record in windows:
            self.assertLessEqual(IN_WINDOWS, record.keys())
            self.assertGreater(record["gb_per_s"], 0)
            self.assertGreater(record["limit_gb_per_s"], 0)
            self.assertGreater(record["cpu_s_per_gb"], 0)
            local = record["protocol"] == "local"
            self.assertEqual(set(record["cpu_s_per_gb_by_role"]),
                             {"consumer"} if local else {"consumer", "worker", "dispatcher"})
            self.assertEqual(record["trainer_cpu_s_per_gb"] is None, local)
        for record in summaries:
            self.assertLessEqual(IN_SUMMARIES, record.keys())
            self.assertNotIn("error", record.get("note", "").lower())
            self.assertEqual(record["pairs"], 2)
            self.assertGreater(record["ratio"], 0)
        limits = {(record["workload"], record["protocol"]): record["limit"] for record in summaries}
        self.assertEqual(limits["T1", "shm"], "fill1")
        self.assertEqual(limits["T1", "tcp"], "socket cubic")
        self.assertEqual(limits["T1-0", "grpc"], "socket")
        head, *rows = out.strip().splitlines()
        for word in ("elements/s", "GB/s", "limit GB/s", "ratio", "worst", "CPU s/GB", "trainer CPU"):
            self.assertIn(word, head)
        self.assertEqual(len(rows), 12)

    def test_runs_every_workload(self):
        code, out, err = run("T2", "I1", "I2", "H1", "S1", "--protocol", "shm", *SHORT, "--json", "-")
        self.assertEqual(code, 0, err)
        _, windows, summaries = records(out)
        for record in summaries:
            self.assertNotIn("error", record.get("note", "").lower())
            self.assertGreater(record["ratio"], 0)
        self.assertEqual({record["workload"]: record["limit"] for record in summaries},
                         {"T2": "fill1", "I1": "libjpeg loop", "I2": "computes 0.224 s", "H1": "mean cost", "S1": "single pair"})
        shared = [record for record in windows if record["workload"] == "S1"]
        self.assertEqual({(record["workers"], record["consumers"]) for record in shared},
                         {(1, 2), (1, 4), (1, 8), (8, 1)})
        for record in shared:
            self.assertEqual(len(record["shares"]), max(record["workers"], record["consumers"]))

    def test_workers_run_on_another_host(self):
        with tempfile.TemporaryDirectory() as folder:
            shell = pathlib.Path(folder, "shell")  # as ssh: a host, then the command
            shell.write_text('#!/bin/sh\n[ "$1" = 127.0.0.2 ] || exit 1\nshift\nexec "$@"\n')
            shell.chmod(0o700)
            code, out, err = run("T1", "I1", "--protocol", "tcp,local", "--size", "65536", *SHORT, "--json", "-",
                                 "--hosts", "127.0.0.1,127.0.0.2", "--remote-shell", str(shell))
        self.assertEqual(code, 0, err)
        _, windows, (tcp, files) = records(out)
        self.assertGreater(tcp["ratio"], 0)
        self.assertIsNone(tcp["cpu_s_per_gb"])  # what the other host used is not known
        self.assertGreater(tcp["trainer_cpu_s_per_gb"], 0)
        self.assertIn("must run here", files["note"])
        self.assertEqual(set(windows[0]["cpu_s_per_gb_by_role"]), {"consumer", "dispatcher"})

    def test_json_on_standard_output_stands_alone(self):
        code, out, err = run("Range", "--protocol", "local", *SHORT, "--json", "-")
        self.assertEqual(code, 0, err)
        _, windows, summaries = records(out)
        self.assertEqual((len(windows), len(summaries)), (2, 1))
        self.assertIn("limit GB/s", err)

    def test_what_cannot_run_is_a_row_with_its_reason(self):
        code, out, err = run("T1", "--protocol", "shm,tcp", "--size", "65536", *SHORT, "--json", "-",
                             env={**os.environ, "PENSTOCK_DATA_TRANSFER_PROTOCOL": "tcp"})
        self.assertEqual(code, 0, err)
        _, windows, (shm, tcp) = records(out)
        self.assertIsNone(shm["ratio"])
        self.assertIn("shm", shm["note"])
        self.assertGreater(tcp["ratio"], 0)
        self.assertEqual(len(windows), 2)

    def test_a_flag_that_makes_no_sense_is_refused_in_words(self):
        for args, words in ((("T9",), "there are T1, "), (("--protocol", "pigeon"), "'pigeon' is not in this build"),
                            (("--size", "3"), "--size must be from"), (("--json", "/nowhere/x"), "cannot write"),
                            (("--hosts", "a"), "--hosts takes")):
            code, out, err = run(*args)
            self.assertEqual((code, out), (1, ""))
            self.assertIn(words, err)
        self.assertEqual(run("--pairs", "0")[0], 2)


if __name__ == "__main__":
    PENSTOCK = sys.argv.pop(1)
    unittest.main()
