#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/cluster/launch.py: which rank a process is, how ranks meet, and what agents run.

    launch_test.py BIN [unittest arguments]      BIN: folder of the built commands
"""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

LAUNCH = pathlib.Path(__file__).resolve().parents[2] / "bench/cluster/launch.py"
sys.path.insert(0, str(LAUNCH.parent))
import launch  # noqa: E402

BIN = None
BOUND = 60  # seconds; only a broken program comes near it


def find_rank(number=None, count=None, leader="", **variables):
    return launch.find_rank(number, count, leader, variables)


class Ranks(unittest.TestCase):
    def test_a_process_that_nobody_launched_is_alone(self):
        self.assertEqual(find_rank().count, 1)

    def test_slurm_tells_all_of_them(self):
        rank = find_rank(SLURM_PROCID="3", SLURM_NTASKS="4", SLURM_NODEID="1", SLURM_JOB_ID="5001", SLURM_STEP_ID="2",
                         SLURM_STEP_NODELIST="gpu[07-08]")
        self.assertEqual(rank, launch.Rank(number=3, count=4, node=1, leader="gpu07:25009", job="5001.2"))

    def test_the_command_line_goes_before_slurm(self):
        rank = find_rank(0, 2, "a:7", SLURM_PROCID="3", SLURM_NTASKS="4")
        self.assertEqual((rank.number, rank.count, rank.leader), (0, 2, "a:7"))

    def test_invalid_options_are_errors(self):
        for given, variables, words in (
                ((2, 2), {}, "--rank and --ranks"), ((0, 2), {}, "--leader"),
                ((0, 2, "fd00::1:7000"), {}, "'fd00::1:7000' is no address; it is host:port, or [host]:port for IPv6"),
                ((), {"SLURM_PROCID": "x"}, "SLURM_PROCID is 'x'"), ((), {"SLURM_PROCID": "1"}, "SLURM_NTASKS only 1")):
            with self.assertRaises(launch.Failed) as error:
                find_rank(*given, **variables)
            self.assertIn(words, str(error.exception))

    def test_the_first_host_of_a_slurm_list(self):
        for names, first in (("login", "login"), ("a,b", "a"), ("gpu[07-09,12],login", "gpu07"), ("gpu[12]", "gpu12"),
                             ("r[1-2]n[03,05]-ib", "r1n03-ib"), ("gpu[1", ""), ("", "")):
            self.assertEqual(launch.first_host(names), first)


class Meeting(unittest.TestCase):
    def meet(self, count, leader, others, seconds=BOUND):
        """Gathers the ranks `others`, (number, node, job) each; returns what the leader found, and each rank's error."""
        rank, errors = launch.Rank(0, count, 0, leader, "j"), []

        def serve():  # one after another
            for number, node, job in others:
                try:
                    launch.serve_leader(BIN, rank._replace(number=number, node=node, job=job), BOUND)
                    errors.append("")
                except launch.Failed as why:
                    errors.append(str(why))

        ranks = threading.Thread(target=serve)
        ranks.start()
        attendees, missing = launch.gather(rank, seconds)
        for attendee in attendees:
            attendee["connection"].close()
        ranks.join()
        return attendees, missing, errors

    def test_the_first_rank_of_each_other_node_serves_until_its_end(self):
        attendees, missing, errors = self.meet(3, "127.0.0.1:29870", [(1, 1, "another"), (1, 0, "j"), (2, 1, "j")])
        self.assertEqual([(attendee["rank"], attendee["there"]) for attendee in attendees], [(2, "127.0.0.1")])
        self.assertEqual(missing, [])
        self.assertIn("has closed", errors[0])
        self.assertEqual(errors[1:], ["", ""])

    def test_it_is_held_over_ipv6_too(self):
        try:
            launch.listen("::1").close()
        except OSError:
            self.skipTest("this machine has no IPv6")
        attendees, _, errors = self.meet(2, "[::1]:29872", [(1, 1, "j")])
        self.assertEqual([attendee["there"] for attendee in attendees], ["::1"])
        self.assertTrue(attendees[0]["agent"].startswith("[::1]:"))
        self.assertEqual(errors, [""])

    def test_missing_ones_are_reported(self):
        self.assertEqual(self.meet(3, "127.0.0.1:29871", [], seconds=0.02), ([], [1, 2], []))


class Agent(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.agent = subprocess.Popen([sys.executable, LAUNCH, "--bin", BIN, "agent", "127.0.0.1"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      env={**os.environ, "TMPDIR": self.folder.name})
        self.addCleanup(self.end)
        self.agent.stdin.write("the key\n")
        self.agent.stdin.flush()
        self.address = f"127.0.0.1:{int(self.agent.stdout.readline())}"

    def end(self):
        for pipe in (self.agent.stdin, self.agent.stdout, self.agent.stderr):
            pipe.close()
        self.agent.wait(BOUND)

    def order(self, *words, key="the key"):
        return subprocess.run([sys.executable, LAUNCH, "--bin", BIN, "there", self.address, *words], capture_output=True,
                              text=True, timeout=BOUND, env={**os.environ, launch.KEY: key})

    def test_it_runs_a_command_and_passes_on_its_output(self):
        done = self.order("bench-survey", "127.0.0.1")
        self.assertEqual(json.loads(done.stdout)["interface"], "lo")
        self.assertIn("a process ended: it said nothing", done.stderr)
        self.assertEqual(self.order("bench-tool", "x").stderr.count("SECONDS"), 1)  # the last line of its stderr

    def test_it_refuses_what_has_no_key_and_what_is_no_measuring_command(self):
        self.assertIn("an order without the key", self.order("bench-survey", key="another").stderr)
        self.assertIn("an order for what ranks do not do for each other", self.order("dispatcher").stderr)
        with socket.create_connection(("127.0.0.1", int(self.address.split(":")[1]))) as connection:
            connection.sendall(b"hello\n")
            self.assertIn(b"without the key", connection.recv(100))

    def running(self):
        """Starts a command that does not end by itself; returns the process that ordered it, and the command's id."""
        command = ("bench-tool", "1000", "sleep", "1000")
        there = subprocess.Popen([sys.executable, LAUNCH, "--bin", BIN, "there", self.address, *command],
                                 env={**os.environ, launch.KEY: "the key"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(there.wait)
        return there, self.wait_for(lambda: self.children())[0]

    def children(self):
        pid = self.agent.pid
        return [int(child) for thread in os.listdir(f"/proc/{pid}/task")
                for child in pathlib.Path(f"/proc/{pid}/task/{thread}/children").read_text().split()]

    def wait_for(self, condition):
        end = time.monotonic() + BOUND
        while not (found := condition()):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        return found

    def test_a_command_ends_with_the_process_that_ordered_it(self):
        there, _ = self.running()
        there.send_signal(signal.SIGKILL)
        self.wait_for(lambda: not self.children())

    def test_its_commands_end_with_the_leader(self):
        _, command = self.running()
        self.agent.stdin.close()
        self.assertEqual(self.agent.wait(BOUND), 0)
        self.assertFalse(pathlib.Path(f"/proc/{command}").exists())
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_a_signal_ends_it_and_its_commands(self):
        _, command = self.running()
        self.agent.send_signal(signal.SIGTERM)
        self.assertEqual(self.agent.wait(BOUND), 1)
        self.assertFalse(pathlib.Path(f"/proc/{command}").exists())
        self.assertEqual(os.listdir(self.folder.name), [])


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1))
    unittest.main()
