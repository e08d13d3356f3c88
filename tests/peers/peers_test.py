#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The output and records of bench/peers, with a peer that has no system.

    peers_test.py SOURCE_DIR PENSTOCK [unittest arguments]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE_DIR = PENSTOCK = PEERS = None
HERE = pathlib.Path(__file__).resolve().parent
BOUND = 120  # seconds; only a broken program comes near it
SHORT = ("--window", "0.05", "--pairs", "2", "--source-mib", "8")
SETUP = {"workload": "T1", "protocol": "shm", "element_bytes": 65536, "workers": 1, "consumers": 1, "window_s": 0.05,
         "source_bytes": 1 << 20, "service": "", "scratch": "/tmp"}

IN_WINDOWS = {
    "v", "workload", "system", "version", "protocol", "compression", "variant", "settings", "element_bytes",
    "workers", "consumers", "run", "seconds", "elements", "elements_per_s", "gb_per_s", "p50_us", "p99_us", "max_us",
    "cpu_s_per_gb", "cpu_s_per_gb_by_role", "trainer_cpu_s_per_gb", "cpu_us_per_element", "rss_mb", "rss_mb_by_role",
    "foreign_cores"}


def command(name):
    return [sys.executable, str(HERE / "counting_peer.py"), SOURCE_DIR, name]


def say(argv, *lines):
    """Runs the peer; returns its answers and its exit code."""
    done = subprocess.run(argv, input="".join(json.dumps(line) + "\n" for line in lines), capture_output=True,
                          text=True, timeout=BOUND, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode


def run(*names, **kwargs):
    """Runs bench/peers; returns its records."""
    done = subprocess.run([sys.executable, PEERS / "run.py", *names, "--size", "65536", *SHORT], capture_output=True,
                          text=True, timeout=BOUND, check=True, **kwargs)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Wire(unittest.TestCase):
    def test_reads_a_window_for_each_line_until_the_input_ends(self):
        (ready, *windows), code = say(command("counting"), SETUP, {"seconds": 0.02}, {"seconds": 0.02})
        self.assertEqual(code, 0)
        self.assertEqual(list(ready["pids"]), ["consumer"])
        self.assertEqual(ready["settings"]["touch"], "every byte")
        self.assertEqual(len(windows), 2)
        for window in windows:
            self.assertGreaterEqual(window["seconds"], 0.02)
            self.assertEqual(window["bytes"], window["elements"] * SETUP["element_bytes"])
            self.assertEqual(window["shares"], [window["elements"]])
            self.assertLessEqual(window["p50_us"], window["p99_us"])
            self.assertLessEqual(window["p99_us"], window["max_us"])

    def test_t1_0_reads_a_byte_of_each_page_unless_told_otherwise(self):
        (ready,), _ = say(command("counting"), SETUP | {"workload": "T1-0"})
        self.assertEqual(ready["settings"]["touch"], "one byte in 4 KiB")
        (ready,), _ = say(command("counting"), SETUP | {"workload": "T1-0", "touch": "every byte"})
        self.assertEqual(ready["settings"]["touch"], "every byte")

    def test_c1_computes_on_each_element_before_it_asks_for_the_next(self):
        (_, window), _ = say(command("counting"), SETUP | {"workload": "C1"}, {"seconds": 0.02})
        self.assertLessEqual(window["elements"], window["seconds"] / 0.0035)

    def test_an_element_that_was_not_due_is_a_loss_of_data(self):
        (answer,), code = say(command("skipping"), SETUP)
        self.assertEqual(code, 1)
        self.assertIn("number 4 was not due", answer["error"])
        self.assertTrue(answer["data_loss"])

    def test_a_setup_that_no_peer_has_is_refused_in_words(self):
        for change, words in (({"workload": "H1"}, "the workloads T1, T1-0, I1, I1-dct, L1-0, C1, not H1"), ({"consumers": 2}, "not 2"),
                              ({"element_bytes": 20}, "multiple of 8")):
            (answer,), code = say(command("counting"), SETUP | change)
            self.assertEqual(code, 1)
            self.assertIn(words, answer["error"])
            self.assertFalse(answer["data_loss"])


@unittest.skipUnless("PENSTOCK_PEER_PYTHON" in os.environ, "the Python module is not built")
class Ours(unittest.TestCase):
    """The peer that is Penstock itself, read from Python: real servers."""

    def peer(self, setup, *windows):
        return say([sys.executable, str(PEERS / "start.py"), "penstock-python"], SETUP | setup, *windows)

    def test_reads_t1_through_a_service_of_its_own(self):
        (ready, window), code = self.peer({}, {"seconds": 0.05})
        self.assertEqual(code, 0)
        self.assertEqual((ready["system"], ready["protocol"]), ("penstock_python", "shm"))
        self.assertEqual({role: len(pids) for role, pids in ready["pids"].items()},
                         {"dispatcher": 1, "worker": 1, "consumer": 1})
        self.assertEqual(window["bytes"], window["elements"] * SETUP["element_bytes"])
        self.assertGreater(window["elements"], 0)
        for pids in ready["pids"].values():
            self.assertFalse(any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids))

    def test_more_workers_are_refused_in_words(self):
        (answer,), code = self.peer({"workers": 2})
        self.assertEqual(code, 1)
        self.assertIn("one worker, not 2", answer["error"])

    def test_images_need_the_files_of_the_bench(self):
        (answer,), code = self.peer({"workload": "I1", "scratch": "/nowhere"})
        self.assertEqual(code, 1)
        self.assertIn("I1 reads files that `penstock bench` writes", answer["error"])


class Run(unittest.TestCase):
    def test_writes_a_record_for_each_window_then_a_summary(self):
        counting = " ".join(command("counting"))
        records = run(counting, counting)
        windows = [record for record in records if "summary" not in record]
        self.assertEqual([record["run"] for record in windows], [0, 1, 0, 1])
        for record in windows:
            self.assertLessEqual(IN_WINDOWS, record.keys())
            self.assertEqual(record["system"], "counting")
            self.assertGreater(record["gb_per_s"], 0)
            self.assertGreater(record["rss_mb"], 0)
        ours, theirs, beside = records[4:]
        self.assertEqual((ours["windows"], theirs["windows"]), (2, 2))
        self.assertLessEqual(ours["min_gb_per_s"], ours["gb_per_s"])
        self.assertEqual(beside["pairs"], 2)
        self.assertGreater(beside["ratio"], 0)
        self.assertLessEqual(beside["worst_ratio"], beside["ratio"])

    def test_a_peer_that_did_not_run_is_a_record_with_the_reason(self):
        with tempfile.TemporaryDirectory() as empty:
            records = run("tfdata", " ".join(command("counting")), env={**os.environ, "PENSTOCK_PEERS": empty})
        errors = {record["system"]: record.get("error") for record in records if record.get("summary")}
        self.assertEqual(errors, {"tfdata": "tfdata is not installed; run ./run deps peers tfdata", "counting": None})


class Bench(unittest.TestCase):
    @unittest.skipUnless("PENSTOCK_PEER_PYTHON" in os.environ, "the Python module is not built")
    def test_ours_from_python_takes_turns_with_ours(self):
        done = subprocess.run([PENSTOCK, "bench", "I1", "--protocol", "shm", *SHORT, "--json", "-", "--peers",
             "penstock-python"],
                              capture_output=True, text=True, timeout=BOUND, check=False, cwd=SOURCE_DIR)
        self.assertEqual(done.returncode, 0, done.stderr)
        summaries = [line for line in map(json.loads, done.stdout.splitlines()) if "summary" in line]
        self.assertEqual([(record["system"], record["limit"]) for record in summaries],
                         [("penstock", "libjpeg loop"), ("penstock_python", "libjpeg loop"),
                          ("penstock", "penstock-python")])
        for record in summaries:
            self.assertGreater(record["gb_per_s"], 0)

    def test_peers_take_turns_with_ours(self):
        with tempfile.TemporaryDirectory() as folder:
            launcher = pathlib.Path(folder, "launch")
            launcher.write_text(f"#!/bin/sh\nexec {' '.join(command(chr(36) + '1'))}\n")
            launcher.chmod(0o755)
            done = subprocess.run(
                [PENSTOCK, "bench", "T1", "--protocol", "shm", "--size", "65536", *SHORT, "--json", "-", "--peers",
                 "counting,absent", "--peer-launcher", str(launcher)],
                capture_output=True, text=True, timeout=BOUND, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        records = [json.loads(line) for line in done.stdout.splitlines()]
        summaries = [record for record in records if "summary" in record]
        self.assertEqual([(record["system"], record["limit"]) for record in summaries],
                         [("penstock", "fill1"), ("counting", "fill1"), ("penstock", "counting"),
                          ("absent", "fill1")])
        ours, counting, beside, absent = summaries
        self.assertEqual((counting["protocol"], counting["version"]), ("none", "1"))
        self.assertEqual(counting["settings"], {"touch": "every byte"})
        # Each row leaves out its own disturbed pairs, so medians may differ.
        for record in (ours, counting, beside):
            self.assertGreater(record["gb_per_s"], 0)
            self.assertGreater(record["limit_gb_per_s"], 0)
        self.assertGreater(beside["cpu_ratio"], 0)
        self.assertEqual(absent["note"], "absent is not installed")
        self.assertIsNone(absent["ratio"])
        self.assertIn("CPU ratio", done.stderr)

    def test_a_peers_wrong_element_is_a_fault(self):
        with tempfile.TemporaryDirectory() as folder:
            launcher = pathlib.Path(folder, "launch")
            launcher.write_text(f"#!/bin/sh\nexec {' '.join(command('skipping'))}\n")
            launcher.chmod(0o755)
            done = subprocess.run(
                [PENSTOCK, "bench", "T1", "--protocol", "shm", "--size", "65536", *SHORT, "--peers", "skipping",
                 "--peer-launcher", str(launcher)],
                capture_output=True, text=True, timeout=BOUND, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("number 4 was not due", done.stderr)


if __name__ == "__main__":
    SOURCE_DIR, PENSTOCK = sys.argv[1:3]
    del sys.argv[1:3]
    PEERS = pathlib.Path(SOURCE_DIR, "bench", "peers")
    unittest.main()
