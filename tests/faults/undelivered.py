#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Elements that a reader of a shared job received and did not return go to the others.

A reader leaves, is killed with kill -9, or stays and requests nothing, in the middle of a job or with
all of the pass in its window; others read the job to its end. Every record comes once: none is lost,
and none comes twice except those that a killed reader had returned but could not report any more. The
last line reports the result.
"""
import random

import program
from fleet import Failed, Fleet, differences, history

COUNT = 1000
WORKERS = 2
WHOLE_PASS = 0  # a window by bytes, which small elements do not fill


class Job:
    """Readers of one job with ack_mode = on_delivery."""

    def __init__(self, fleet, name, mode, window):
        self.fleet, self.name, self.window = fleet, name, window
        self.options = ["--keep-taken", "--mode", mode]
        self.passes = WORKERS if mode == "off" else 1
        self.readers, self.killed = [], []
        self.unlogged = 0  # elements that Next() may have returned to killed readers before they could log them

    def open(self):
        self.fleet.window = self.window
        reader = self.fleet.start_trainer(*self.options)
        reader.log = self.fleet.folder / f"{self.name}-{len(self.readers)}.log"
        reader.expect(f"open {self.name} {COUNT} 1 {reader.log} {reader.log}.state", "open")
        self.readers.append(reader)
        return reader

    def kill(self, reader, reading=False):
        reader.kill()
        self.killed.append(reader)
        self.unlogged += reading and reader.lines.get() is None  # it had not answered

    def end(self):
        """Checks the elements that all readers have read together."""
        lost, doubled = differences([reader.log for reader in self.readers], COUNT, self.passes)
        unsaid = sum(len(history(reader.log)) for reader in self.killed)
        if lost > self.unlogged or doubled > unsaid:
            raise Failed(f"{self.name}: lost={lost} doubled={doubled}, "
                         f"but killed readers explain at most {self.unlogged} and {unsaid}")
        for reader in self.readers:
            reader.kill()


def leaves(job, rng):
    reader = job.open()
    reader.expect(f"read {rng.randrange(1, COUNT // 2)}", "read")
    reader.expect("close", "closed")
    job.open().expect("all", "end", seconds=60)


def is_killed(job, rng):
    reader = job.open()
    reader.expect(f"read {rng.randrange(1, COUNT // 2)}", "read")
    job.kill(reader)
    job.open().expect("all", "end", seconds=60)


def is_killed_beside_another(job, rng):
    one, other = job.open(), job.open()
    one.say(f"read {rng.randrange(1, COUNT // 4)}")
    other.expect(f"read {rng.randrange(1, COUNT // 4)}", "read", seconds=60)
    job.kill(one, reading=True)
    other.expect("all", "end", seconds=60)


def asks_for_nothing(job, rng):
    idle = job.open()
    idle.expect(f"read {rng.randrange(1, 20)}", "read")
    job.open().expect("all", "end", seconds=60)
    idle.expect("all", "end", seconds=60)


def take_turns(job, rng):
    readers = [job.open() for _ in range(2)]
    ended = False
    while not ended:
        for reader in readers:
            ended |= reader.ask(f"read {rng.randrange(1, 40)}", seconds=60) == "end"
    for reader in readers:
        reader.expect("all", "end", seconds=60)
    least = min(len(history(reader.log)) for reader in readers)
    if least < COUNT * job.passes // 10:
        raise Failed(f"{job.name}: one of two readers that took turns got {least} elements")


SCENES = [leaves, is_killed, is_killed_beside_another, asks_for_nothing, take_turns]


def replace_ended(fleet, workers):
    """Replaces workers that have ended; returns their number. Only UCX 1.13 may cause this: it aborts at some killed
    peers."""
    ended = [worker for worker in workers if worker.child.poll() is not None]
    for worker in ended:
        if fleet.protocol != "ucx":
            raise Failed(f"{worker.name} ended unexpectedly:\n{worker.errors.read_text()[-2000:]}")
        workers[workers.index(worker)] = fleet.start_worker()
    return len(ended)


def run(args, folder, found):
    with Fleet(args.bin, folder, args.protocol, 2000) as fleet:
        workers = [fleet.start_worker() for _ in range(WORKERS)]
        for seed in range(args.seed, args.seed + args.seeds):
            rng = random.Random(seed)
            for scene in SCENES:
                for mode in ("dynamic", "off", "data"):
                    for window in (WHOLE_PASS, 16):
                        job = Job(fleet, f"{scene.__name__}-{mode}-{window}-{seed}", mode, window)
                        scene(job, rng)
                        job.end()
                        found.jobs += 1
                        found.ended_workers += replace_ended(fleet, workers)


if __name__ == "__main__":
    program.conclude(program.parser(__doc__, seeds=True).parse_args(), run, jobs=0, ended_workers=0)
