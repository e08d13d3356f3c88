#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`penstock bench` as people and machines use it: real processes, windows too short to mean anything.

    bench_test.py PENSTOCK [unittest arguments]
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PENSTOCK = None
BOUND = 600  # seconds; only a broken program comes near it, even under sanitizers and beside other tests
CLUSTER = ("--window", "0.05", "--pairs", "2")
SHORT = (*CLUSTER, "--source-mib", "8")

IN_EACH = {"v", "workload", "system", "version", "protocol", "element_bytes", "workers", "consumers", "limit"}
IN_WINDOWS = IN_EACH | {
    "run", "seconds", "elements", "elements_per_s", "gb_per_s", "p50_us", "p99_us", "max_us", "cpu_s_per_gb",
    "cpu_s_per_gb_by_role", "trainer_cpu_s_per_gb", "rss_mb", "foreign_cores", "limit_gb_per_s", "ratio", "clean"}
IN_SUMMARIES = IN_EACH | {"summary", "ratio", "worst_ratio", "pairs", "clean_pairs"}


def run(*args, **kwargs):
    """Runs the bench to its end; returns (exit code, stdout, stderr)."""
    done = subprocess.run([PENSTOCK, "bench", *args], capture_output=True, text=True, timeout=BOUND, check=False,
                          **kwargs)
    return done.returncode, done.stdout, done.stderr


def records(text):
    """Returns the machine's line, the lines of windows, and the summaries."""
    lines = [json.loads(line) for line in text.splitlines()]
    return (lines[0], [line for line in lines[1:] if "summary" not in line],
            [line for line in lines[1:] if "summary" in line])


def write_shell(folder):
    """Writes a program that replaces ssh: it takes a host, then the command."""
    shell = pathlib.Path(folder, "shell")
    shell.write_text('#!/bin/sh\ncase $1 in 127.0.0.[23]) ;; *) exit 1 ;; esac\nshift\nexec "$@"\n')
    shell.chmod(0o700)
    return str(shell)


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for(what, condition):
    deadline = time.monotonic() + BOUND
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come")
        time.sleep(0.01)


def without_slurm():
    return {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}


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
        code, out, err = run("T1-z", "T2", "I1", "I1-dct", "I1-shuffle", "I2", "H1", "V1", "C1", "L1", "L1-0", "R1",
                             "S1", "S1-cached", "L2", "M1", "CR", "--size", "1048576", "--protocol", "shm", *SHORT, "--json", "-")
        self.assertEqual(code, 0, err)
        _, windows, summaries = records(out)
        for record in summaries:
            self.assertNotIn("error", record.get("note", "").lower())
            self.assertGreater(record["ratio"], 0)
        self.assertEqual({record["workload"]: record["limit"] for record in summaries},
                         {"T1-z": "no compression", "T2": "fill1", "I1": "libjpeg loop", "I1-dct": "libjpeg loop",
                          "I1-shuffle": "I1",
                          "I2": "libjpeg loop, paced", "H1": "mean cost", "V1": "libzip loop, paced", "C1": "widening loop, paced",
                          "L1": "computes 15.6 ms", "L1-0": "copy loop", "R1": "gather loop", "S1": "single pair",
                          "S1-cached": "one trainer",
                          "L2": "uncoordinated", "M1": "uncoordinated", "CR": "4 x tf.data service"})
        self.assertEqual({record["workload"] for record in summaries if "utilization" in record},
                         {"I2", "V1", "C1", "L1", "S1-cached"})
        fed = [record["consumers"] for record in summaries if record["workload"] == "I2"]
        self.assertEqual(fed, [1, 2, 4, 8, 16])
        shared = [record for record in windows if record["workload"] == "S1"]
        self.assertEqual({(record["workers"], record["consumers"]) for record in shared},
                         {(1, 2), (1, 4), (1, 8), (8, 1)})
        for record in shared:
            self.assertEqual(len(record["shares"]), max(record["workers"], record["consumers"]))
        together = [record for record in windows if "skew_p99_us" in record]
        self.assertEqual({(record["workload"], record["consumers"]) for record in together},
                         {(name, k) for name in ("L2", "M1", "CR") for k in (2, 4)})
        for record in together:
            self.assertEqual(len(set(record["shares"])), 1)  # all trainers make the same steps
            self.assertLessEqual(record["spread_p99"], 0.0501)

    def test_workers_run_on_another_host(self):
        with tempfile.TemporaryDirectory() as folder:
            shell = write_shell(folder)
            code, out, err = run("T1", "I1", "--protocol", "tcp,local", "--size", "65536", *SHORT, "--json", "-",
                                 "--hosts", "127.0.0.1,127.0.0.2", "--remote-shell", shell)
        self.assertEqual(code, 0, err)
        _, windows, (tcp, files) = records(out)
        self.assertGreater(tcp["ratio"], 0)
        self.assertIsNone(tcp["cpu_s_per_gb"])  # what the other host used is unknown
        self.assertGreater(tcp["trainer_cpu_s_per_gb"], 0)
        self.assertIn("must run here", files["note"])
        self.assertEqual(set(windows[0]["cpu_s_per_gb_by_role"]), {"consumer", "dispatcher"})

    def test_cluster_runs_available_levels_and_names_missing_ones(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.html")
            code, out, err = run("cluster", "--level", "memcpy,fill1,shm,cuMemcpy", "--protocol", "shm,tcp",
                                 "--size", "65536", *CLUSTER, "--json", "-", "--html", str(page),
                                 env=without_slurm())
            self.assertEqual(code, 0, err)
            self.assertIn("<h2>host</h2>", page.read_text())
        _, windows, summaries = records(out)
        rows = {(record["system"], record["limit"]): record for record in summaries}
        for key in (("memcpy", ""), ("fill1", ""), ("penstock", "fill1"), ("penstock", "memcpy")):
            self.assertGreater(rows[key]["gb_per_s"], 0)
        self.assertGreater(rows["penstock", "memcpy"]["ratio"], 0)
        self.assertIsNone(rows["memcpy", ""]["ratio"])
        self.assertIn("no other host", rows["all", ""]["note"])
        self.assertTrue(windows)

    def test_cluster_measures_links_over_a_remote_shell(self):
        with tempfile.TemporaryDirectory() as folder:
            shell = write_shell(folder)
            code, out, err = run("cluster", "--level", "socket,tcp,sendrecv_perf", "--protocol", "tcp", "--size",
                                 "65536", *CLUSTER, "--json", "-", "--hosts", "127.0.0.1,127.0.0.2",
                                 "--remote-shell", shell)
        self.assertEqual(code, 0, err)
        self.check_links(out, ["127.0.0.1", "127.0.0.2"])
        here = json.loads(out.splitlines()[0])
        self.assertEqual(here["adapters"][0], {"name": "lo"})
        self.assertGreater(here["numa_nodes"], 0)
        self.assertIn("; over lo", err)

    def test_a_quick_cluster_takes_few_levels_and_all_hosts_to_one(self):
        with tempfile.TemporaryDirectory() as folder:
            code, out, err = run("cluster", "--quick", "--window", "0.1", "--protocol", "tcp", "--json", "-", "--hosts",
                                 "127.0.0.1,127.0.0.2,127.0.0.3", "--remote-shell", write_shell(folder))
        self.assertEqual(code, 0, err)
        _, _, summaries = records(out)
        together = {(record["system"], record["limit"]): record
                    for record in summaries if record["workload"] == "many-to-one"}
        ours = together["penstock", "socket cubic"]
        self.assertGreater(ours["ratio"], 0)
        self.assertEqual(ours["hosts"], ["127.0.0.1", "2 hosts"])
        links = [record for record in summaries if record["workload"] == "link" and record["gb_per_s"]]
        self.assertEqual({record["hosts"][1] for record in links}, {"127.0.0.2", "127.0.0.3"})
        self.assertEqual({record["element_bytes"] for record in links}, {1 << 20})
        self.assertLessEqual({record["system"] for record in links}, {"socket", "penstock"})
        self.assertTrue(all(record["ratio"] for record in links if record["system"] == "penstock"))

    def test_cluster_ranks_find_each_other_by_slurms_variables(self):
        job = str(os.getpid())
        ranks = {number: {**without_slurm(), "SLURM_PROCID": str(number), "SLURM_NTASKS": "2", "SLURM_NODEID":
                          str(number), "SLURM_JOB_ID": job, "SLURM_STEP_ID": "0",
                          "SLURM_STEP_NODELIST": "127.0.0.1"} for number in (0, 1)}
        with subprocess.Popen([PENSTOCK, "bench", "cluster"], env=ranks[1], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as other:
            code, out, err = run("cluster", "--level", "socket,tcp,sendrecv_perf", "--protocol", "tcp", "--size",
                                 "65536", *CLUSTER, "--json", "-", env=ranks[0])
            said, _ = other.communicate(timeout=BOUND)
        self.assertEqual((code, other.returncode), (0, 0), err + said)
        self.assertEqual(said, "")
        self.check_links(out, ["127.0.0.1", "127.0.0.1"])

    def check_links(self, out, hosts):
        """Checks the output that both ways of launching have in common."""
        summaries = [record for record in map(json.loads, out.splitlines()) if "summary" in record]
        links = {(record["system"], record["variant"], record["limit"]): record
                 for record in summaries if record["workload"] == "link"}
        for streams in (1, 4, 8):
            self.assertGreater(links["socket", f"cubic x{streams}", ""]["gb_per_s"], 0)
        machines = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
        beside = links["penstock", "", f"socket {machines} x1"]
        self.assertEqual(beside["hosts"], hosts)
        self.assertGreater(beside["ratio"], 0)
        one = links["penstock", "one at a time", ""]
        self.assertGreater(one["p50_us"], 0)
        self.assertRegex(links["sendrecv_perf", "", ""]["note"], "is not installed on|not started by us")

    def interrupt(self, number, *args):
        """Sends the signal to a bench whose processes run; it must leave no process and no file."""
        with tempfile.TemporaryDirectory() as folder:
            with subprocess.Popen([PENSTOCK, "bench", *args], env={**without_slurm(), "TMPDIR": folder},
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as bench:
                wait_for("a dispatcher, a worker and a trainer", lambda: len(children(bench.pid)) >= 3)
                started = children(bench.pid)
                self.assertTrue(os.listdir(folder))
                bench.send_signal(number)
                _, errors = bench.communicate(timeout=BOUND)
            self.assertEqual(bench.returncode, 1, errors)
            self.assertIn("interrupted", errors.splitlines()[-1])
            self.assertEqual([pid for pid in started if pathlib.Path(f"/proc/{pid}").exists()], [])
            self.assertEqual(os.listdir(folder), [])

    def test_one_that_is_interrupted_leaves_nothing_behind(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.interrupt(number, "T1", "--protocol", "shm", "--window", "1000", "--source-mib", "8")

    def test_a_cluster_that_is_interrupted_leaves_nothing_behind(self):
        self.interrupt(signal.SIGTERM, "cluster", "--level", "memcpy,shm", "--window", "1000")

    def test_neighbours_have_a_row_beside_ours_alone_and_one_beside_the_limit_among_them(self):
        code, out, err = run("T1", "--protocol", "shm", "--size", "65536", "--neighbours", "2", *SHORT, "--json", "-")
        self.assertEqual(code, 0, err)
        _, windows, (ours, crowded, leveled) = records(out)
        self.assertEqual((ours["variant"], ours["limit"]), ("", "fill1"))
        self.assertEqual((crowded["variant"], crowded["limit"], crowded["pairs"]), ("2 neighbours", "alone", 2))
        self.assertGreater(crowded["ratio"], 0)
        alone = [window["gb_per_s"] for window in windows if window["variant"] == ""]
        beside = [window for window in windows if window["variant"] == "2 neighbours"]
        self.assertEqual([window["limit_gb_per_s"] for window in beside if window["limit"] == "alone"], alone)
        self.assertEqual((leveled["variant"], leveled["limit"], leveled["pairs"]), ("2 neighbours", "fill1 among them", 2))
        of_ours = [[window["gb_per_s"] for window in beside if window["limit"] == row["limit"]] for row in (crowded, leveled)]
        self.assertEqual(of_ours[0], of_ours[1])

    def test_json_on_standard_output_stands_alone(self):
        code, out, err = run("Range", "--protocol", "local", *SHORT, "--json", "-")
        self.assertEqual(code, 0, err)
        _, windows, summaries = records(out)
        self.assertEqual((len(windows), len(summaries)), (2, 1))
        self.assertIn("limit GB/s", err)

    def test_a_system_that_cannot_run_is_a_row_with_its_reason(self):
        code, out, err = run("T1", "--protocol", "shm,tcp", "--size", "65536", *SHORT, "--json", "-",
                             env={**os.environ, "PENSTOCK_DATA_TRANSFER_PROTOCOL": "tcp"})
        self.assertEqual(code, 0, err)
        _, windows, (shm, tcp) = records(out)
        self.assertIsNone(shm["ratio"])
        self.assertIn("shm", shm["note"])
        self.assertGreater(tcp["ratio"], 0)
        self.assertEqual(len(windows), 2)

    def test_a_fleet_goes_through_all_phases_without_a_false_death(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "fleet.jsonl")
            code, out, err = run("fleet", "--sizes", "10,20", "--window", "0.5", "--heartbeat", "0.5", "--events", "2",
                                 "--json", str(file))
            self.assertEqual(code, 0, err)
            _, small, large = [json.loads(line) for line in file.read_text().splitlines()]
        self.assertIn("exponent by workers", out)
        for size, workers in ((small, 10), (large, 20)):
            self.assertNotIn("stopped", size)
            self.assertEqual((size["workers"], size["clients"]), (workers, workers // 10))
            values = {figure["name"]: figure["value"] for figure in size["figures"]}
            self.assertEqual(values["false deaths in all"], 0)
            for name in ("restart: all present", "restart: peak memory", "steady: CPU", "steady: client heartbeat p99",
                         "GetStatus, the first page", "bytes to clients, restart"):
                self.assertGreater(values[name], 0, name)
            self.assertLessEqual({"a worker's loss", "a worker's join", "a worker's move", "a client's join"}, values.keys())

    def test_a_flag_that_makes_no_sense_is_refused_in_words(self):
        for args, words in ((("T9",), "there are T1, "), (("--protocol", "pigeon"), "'pigeon' is not in this build"),
                            (("--size", "3"), "--size must be from"), (("--json", "/nowhere/x"), "cannot write"),
                            (("--hosts", "a"), "--hosts needs")):
            code, out, err = run(*args)
            self.assertEqual((code, out), (1, ""))
            self.assertIn(words, err)
        self.assertEqual(run("--pairs", "0")[0], 2)


if __name__ == "__main__":
    PENSTOCK = sys.argv.pop(1)
    unittest.main()
