#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills workers and trainers with kill -9 at random moments, again and again.

A dispatcher, two workers and two trainers that share one job a round. In each
round one worker or trainer is killed at a random moment and its successor
started. Then all elements must be in the trainers' histories once (with
--at-least-once: none is lost, and over all rounds some come twice), the survivors
must have gone on in time, and nothing may be left in /dev/shm or in the survivors'
descriptors, threads and mappings. The last line reports the result.
"""
import random
import time

import program
from fleet import MOST_OF_GRPC, Failed, Fleet, differences, shared_memory

# (elements, int64 values in each): many in a frame, few in a frame, in slots of their own.
JOBS = [(20000, 1), (8000, 2000), (2500, 20000)]
STUCK = 60  # seconds without an end that only a broken program takes


class Watch:
    """The longest time in which the surviving trainers read nothing, though there was something to read."""

    def __init__(self, survivors, logs, count, window):
        self.survivors, self.logs, self.enough = survivors, logs, count - window
        self.longest, self.last, self.size = 0, time.monotonic(), 0

    def look(self):
        now = time.monotonic()
        size = sum(log.stat().st_size for log in self.survivors if log.exists())
        # A dead trainer holds what it had read and what was in its window until it is declared dead.
        if size != self.size or (now - self.last > 0.2 and self.only_the_dead_ones_are_left()):
            self.size, self.last = size, now
        self.longest = max(self.longest, now - self.last)
        time.sleep(0.002)

    def only_the_dead_ones_are_left(self):
        return len({line.split(" ")[0] for log in self.logs if log.exists()
                    for line in log.read_text().split("\n")}) >= self.enough


class Kills:
    def __init__(self, args, fleet, found):
        self.args, self.fleet, self.found = args, fleet, found
        self.rng = random.Random(args.seed)
        self.workers = [fleet.start_worker() for _ in range(2)]
        self.options = ["--at-least-once"] if args.at_least_once else []
        self.trainers = [fleet.start_trainer(*self.options) for _ in range(2)]
        self.names_in_shm = shared_memory()
        self.bases = {}  # by process: its resources at its first two quiet moments
        self.usual = {}  # job: usual duration in seconds

    def log(self, job, i):
        return self.fleet.folder / f"{job}-{i}.log"

    def open(self, i, job, count, words):
        answer = self.trainers[i].ask(f"open {job} {count} {words} {self.log(job, i)} "
                                      f"{self.fleet.folder}/{job}-{i}.checkpoint")
        if answer not in ("open", "resumed"):
            raise Failed(f"{self.trainers[i].name}: {answer}")
        self.trainers[i].say("all")

    def round(self, number, kill):
        """Runs one job of both trainers, with a kill or none; returns (lost, doubled)."""
        count, words = JOBS[number % len(JOBS)]
        job = f"job-{number}"
        began = time.monotonic()
        for i in range(2):
            self.open(i, job, count, words)
        if kill:
            self.strike(number, job, count, words)
        for trainer in self.trainers:
            self.expect(trainer, trainer.hear(STUCK), "end")
        if not kill:
            self.usual[count] = time.monotonic() - began
        for trainer in self.trainers:
            self.expect(trainer, trainer.ask("close"), "closed")
        lost, doubled = differences([self.log(job, i) for i in range(2)], count)
        self.found.lost, self.found.doubled = self.found.lost + lost, self.found.doubled + doubled
        self.await_quiet()
        for path in self.fleet.folder.glob(f"{job}-*"):
            path.unlink()
        return lost, doubled

    def expect(self, trainer, answer, expected):
        if answer != expected:
            raise Failed(f"{trainer.name}: {answer}")

    def strike(self, number, job, count, words):
        """Kills one of them and starts its successor while the survivors are watched."""
        moment = self.rng.uniform(0, self.usual[count])
        role, i = self.rng.choice(["worker", "trainer"]), self.rng.randrange(2)
        time.sleep(moment)
        victim = (self.workers if role == "worker" else self.trainers)[i]
        victim.kill()
        survivors = [j for j in range(2) if role == "worker" or j != i]
        watch = Watch([self.log(job, j) for j in survivors], [self.log(job, j) for j in range(2)], count,
                      self.fleet.window)
        successor_at = time.monotonic() + self.rng.uniform(0, 0.2)
        while time.monotonic() < successor_at:
            watch.look()
        if role == "worker":
            self.workers[i] = self.fleet.start_worker()
        else:
            self.trainers[i] = self.fleet.start_trainer(*self.options)
            self.open(i, job, count, words)
        deadline = time.monotonic() + STUCK
        while any(self.trainers[j].lines.empty() for j in survivors) and time.monotonic() < deadline:
            watch.look()
        print(f"  {number}: kill -9 {victim.name} after {moment:.3f} s; "
              f"survivors paused {watch.longest:.3f} s at most", flush=True)
        self.found.longest_pause = max(self.found.longest_pause, round(watch.longest, 3))
        self.found.kills += 1

    def await_quiet(self):
        """Waits until no process holds more than in its first two quiet moments: one may miss its first job."""
        deadline = time.monotonic() + 20
        while left := self.what_is_left():
            if time.monotonic() > deadline:
                raise Failed("; ".join(left))
            time.sleep(0.02)
        for process in self.processes():
            if len(base := self.bases.setdefault(process.name, [])) < 2:
                base.append(process.holds())

    def processes(self):
        return [self.fleet.dispatcher, *self.workers, *self.trainers]

    def what_is_left(self):
        left = [f"{name} is still in /dev/shm" for name in shared_memory() - self.names_in_shm]
        for process in self.processes():
            now = process.holds()
            if now["segments"] > 0:
                left.append(f"{process.name} still maps {now['segments']} segments")
            base = self.bases.get(process.name, [])
            for what in now if len(base) == 2 else []:
                most = max(held[what] for held in base) + (MOST_OF_GRPC if what == "threads of gRPC" else 0)
                if now[what] > most:
                    left.append(f"{process.name} holds {now[what]} {what}, expected at most {most}")
        return left

    def run(self):
        for number in range(len(JOBS)):
            self.round(number, kill=False)
        for number in range(len(JOBS), len(JOBS) + self.args.kills):
            lost, doubled = self.round(number, kill=True)
            if lost or (doubled and not self.args.at_least_once):
                raise Failed(f"round {number}: lost={lost} doubled={doubled}")
        if self.args.at_least_once and not self.found.doubled:
            raise Failed("no element came twice, so the test proves nothing")
        if self.found.longest_pause > self.args.patience:
            raise Failed(f"survivors took {self.found.longest_pause} s to go on, more than {self.args.patience} s")


def run(args, folder, found):
    with Fleet(args.bin, folder, args.protocol, client_timeout_ms=5000) as fleet:
        Kills(args, fleet, found).run()


if __name__ == "__main__":
    parser = program.parser(__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patience", type=float, default=2, help="seconds that survivors may take to go on")
    parser.add_argument("--at-least-once", action="store_true", help="visitation: elements may come twice")
    program.conclude(parser.parse_args(), run, kills=0, lost=0, doubled=0, longest_pause=0)
