# SPDX-License-Identifier: Apache-2.0
"""Ranks of torch.distributed over gloo. One is killed while the others are in a collective: they raise an error that
names it. Ranks that are not at the same step get an error too."""
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import penstock as ps
from cluster import Cluster

RANKS = 4
KILLED = 2
BOUND = 3.0  # seconds

# A rank that reads rounds, and dies at the fifth step if it is KILLED. A rank that raises ends, as a trainer does.
RANK = """
import json, os, signal, sys, time
import penstock as ps
import torch
import torch.distributed as dist

rank, world, killed, store, service, collective = json.loads(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=world)
dataset = ps.torch.distribute(ps.Dataset.range(1 << 40), "distributed_epoch", service, "rounds", coordinated=True)
loader = ps.torch.DataLoader(dataset)

def step(value):
    if collective == "all_reduce":
        dist.all_reduce(torch.ones(1 << 16))
    elif rank != killed:  # each waits for the next, and the last for the one that is killed
        dist.recv(torch.ones(1), src=(rank + 1) % world)

try:
    with ps.torch.AbortOnLoss(loader):
        for number, value in enumerate(loader):
            if number < 5:
                dist.barrier()
                continue
            if rank == killed:
                time.sleep(0.5)  # the others are in it
                print(json.dumps([time.time(), ""]), flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            step(value)
except ps.errors.UnavailableError as error:
    print(json.dumps([time.time(), str(error)]), flush=True)
"""

# A rank that skips a step of its own.
SKIPPING = """
import json, sys
import penstock as ps
import torch.distributed as dist

rank, world, _, store, service, _ = json.loads(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=world)
dataset = ps.torch.distribute(ps.Dataset.range(1 << 40), "distributed_epoch", service, "steps", coordinated=True)
loader = ps.torch.DataLoader(dataset)
told = ""
try:
    for number, _ in enumerate(loader):
        if number == 7 and rank == 1:
            continue
        ps.torch.check_step(loader)
except ps.errors.DataLossError as error:
    told = str(error)
print(json.dumps([number, told]), flush=True)
sys.stdin.read()
os._exit(0)
"""


class Lost(unittest.TestCase):
    def run_ranks(self, script, collective=""):
        """Returns the output of each rank."""
        with Cluster(2) as service, tempfile.TemporaryDirectory() as place:
            ranks = []
            for rank in range(RANKS):
                told = [rank, RANKS, KILLED, os.path.join(place, "store"), service, collective]
                command = [sys.executable, "-c", script, json.dumps(told)]
                ranks.append(
                    subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                )
            lines = [rank.stdout.readline() for rank in ranks]
            ends = [rank.communicate() for rank in ranks]
        for line, (_, errors) in zip(lines, ends):
            self.assertTrue(line, errors[-3000:])
        return [json.loads(line) for line in lines]

    def check(self, collective):
        times, told = zip(*self.run_ranks(RANK, collective))
        for rank in range(RANKS):
            if rank == KILLED:
                continue
            self.assertIn(f"consumer {KILLED} of job rounds is lost", told[rank])
            self.assertIn("its connection to the dispatcher ended", told[rank])
            self.assertLess(times[rank] - times[KILLED], BOUND)

    def test_an_all_reduce_ends(self):
        self.check("all_reduce")

    def test_ranks_that_wait_for_ranks_that_wait_end(self):
        self.check("chain")

    def test_a_rank_that_is_a_step_ahead_is_named_to_all(self):
        for number, told in self.run_ranks(SKIPPING):
            self.assertIn("the ranks are not at the same step", told)
            self.assertIn("rank 0 has taken 8 elements, the last one in round 7 as consumer 0", told)
            self.assertIn("rank 1 has taken 9 elements, the last one in round 8 as consumer 1", told)


class FakeGroup:
    """A process group as AbortOnLoss sees it."""

    def __init__(self):
        self.aborts = 0

    def abort(self):
        self.aborts += 1


class FakeLoader:
    stops = 0

    def stop(self):
        self.stops += 1


def loss(state, job="train", consumer=3):
    return ps.LostConsumer(job, consumer, state, time.time(), "its connection to the dispatcher ended")


def await_timers():
    """Waits until each has run or been cancelled."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join()


class AbortOnLoss(unittest.TestCase):
    """The reaction of AbortOnLoss to events."""

    def setUp(self):
        self.group, self.loader = FakeGroup(), FakeLoader()
        self.block = ps.torch.AbortOnLoss(self.loader, group=self.group, job_name="train", grace=0.2)

    def test_a_consumer_that_ended_is_lost_after_the_grace(self):
        with self.assertRaisesRegex(ps.errors.UnavailableError, "consumer 3 of job train is lost"):
            with self.block:
                begun = time.monotonic()
                self.block._hear(loss("ended"))
                self.assertEqual(self.group.aborts, 0)
                while self.group.aborts == 0 or self.loader.stops == 0:
                    time.sleep(0.01)
                self.assertGreater(time.monotonic() - begun, 0.15)
        self.assertEqual((self.group.aborts, self.loader.stops), (1, 1))

    def test_a_consumer_that_is_back_or_in_doubt_in_time_is_not_lost(self):
        with self.block:
            for state in ("back", "silent"):
                self.block._hear(loss("ended"))
                self.block._hear(loss(state))
            await_timers()
        self.assertEqual(self.group.aborts, 0)

    def test_a_dead_consumer_is_lost_at_once(self):
        with self.assertRaises(ps.errors.UnavailableError):
            with self.block:
                self.block._hear(loss("silent"))
                self.block._hear(loss("dead"))
                self.assertEqual(self.group.aborts, 1)

    def test_an_earlier_error_is_the_cause_of_the_named_one(self):
        with self.assertRaisesRegex(ps.errors.UnavailableError, "consumer 3") as raised:
            with self.block:
                self.block._hear(loss("ended"))
                raise RuntimeError("Connection closed by peer")
        self.assertIsInstance(raised.exception.__cause__, RuntimeError)
        self.assertEqual(self.group.aborts, 1)

    def test_other_errors_and_other_jobs_are_left_alone(self):
        with self.assertRaises(ZeroDivisionError):
            with self.block:
                self.block._hear(loss("dead", job="evaluation"))
                raise ZeroDivisionError
        self.assertEqual(self.group.aborts, 0)

    def test_nothing_is_aborted_once_the_block_has_ended(self):
        with self.block:
            self.block._hear(loss("ended"))
        self.block._hear(loss("dead"))
        await_timers()
        self.assertEqual(self.group.aborts, 0)


if __name__ == "__main__":
    unittest.main()
