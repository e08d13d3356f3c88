#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills workers and trainers with kill -9 under order kDeterministic.

A trainer's history is the same sequence as without any kill: with another number
of workers, with a worker killed, and with the trainer killed and restarted from its
last state. The same holds for the histories of three consumers, by step and consumer,
with a worker and a consumer killed. The last line reports the result, with a hash of
the order.
"""
import hashlib
import random

import program
from fleet import Failed, Fleet, history

COUNT = 4000


class Run:
    """What one trainer reads of a job, from beginning to end: all of it, or a consumer's part."""

    def __init__(self, fleet, name, words, consumer=-1, consumers=0):
        self.fleet, self.words = fleet, words
        self.job, self.log = name, fleet.folder / f"{name}-{consumer}.log"
        self.options = ["--consumer", consumer, "--consumers", consumers] if consumers else []
        self.open()

    def open(self, answer="open"):
        self.trainer = self.fleet.start_trainer("--ordered", *self.options)
        order = f"open {self.job} {COUNT} {self.words} {self.log} {self.log}.checkpoint"
        self.expect(self.trainer.ask(order), answer)

    def expect(self, answer, expected):
        if answer != expected:
            raise Failed(f"{self.trainer.name}: {answer}")

    def read(self, count):
        self.expect(self.trainer.ask(f"read {count}", 60), "read")

    def kill_trainer(self):
        self.trainer.kill()
        self.open("resumed")

    def end(self):
        self.expect(self.trainer.ask("all", 120), "end")
        self.trainer.ask("close")
        self.trainer.kill()
        return self.kept()

    def kept(self):
        return [read.number for read in history(self.log)]


def of_consumers(fleet, name, words, workers, rng):
    """Returns the histories of three consumers, by step and consumer; a worker and one of them are killed meanwhile."""
    runs = [Run(fleet, name, words, i, 3) for i in range(3)]
    first = rng.randrange(50, 400)
    for run in runs:
        run.trainer.say(f"read {first}")
    for run in runs:
        run.expect(run.trainer.hear(120), "read")
    for run in runs[1:]:
        run.trainer.say("all")
    runs[0].read(rng.randrange(1, 30))
    workers[1].kill()
    runs[0].kill_trainer()
    workers[1] = fleet.start_worker()
    runs[0].trainer.say("all")
    for run in runs:
        run.expect(run.trainer.hear(120), "end")
    reads = sorted((read.round, consumer, read.number)
                   for consumer, run in enumerate(runs) for read in history(run.log))
    for run in runs:
        run.trainer.ask("close")
        run.trainer.kill()
    return [number for _, _, number in reads]


def orders(fleet, words, rng):
    """Yields the order without trouble, and after each kind of trouble."""
    workers = [fleet.start_worker() for _ in range(2)]
    undisturbed = Run(fleet, f"plain-{words}", words).end()
    if sorted(undisturbed) != list(range(COUNT)):
        raise Failed(f"{len(undisturbed)} of {COUNT} elements")
    for round in range(2):
        run = Run(fleet, f"worker-{words}-{round}", words)
        run.read(rng.randrange(1, COUNT))
        run.trainer.say("all")  # so that it is killed while it sends
        workers[round].kill()
        workers[round] = fleet.start_worker()
        run.expect(run.trainer.hear(120), "end")
        run.trainer.ask("close")
        run.trainer.kill()
        yield f"worker killed, {words} words", undisturbed, run.kept()
    run = Run(fleet, f"trainer-{words}", words)
    run.read(rng.randrange(50, COUNT))
    run.kill_trainer()
    workers[0].kill()
    yield f"trainer and worker killed, {words} words", undisturbed, run.end()
    workers[0] = fleet.start_worker()
    for round in range(2):
        got = of_consumers(fleet, f"consumers-{words}-{round}", words, workers, rng)
        yield f"consumer and worker killed, {words} words", undisturbed, got
    for worker in workers:
        worker.kill()


def run(args, folder, found):
    order, rng = hashlib.sha256(), random.Random(args.seed)
    with Fleet(args.bin, folder, args.protocol, 60000) as fleet:
        for words in (1, 2000, 20000):
            for what, wanted, got in orders(fleet, words, rng):
                found.kills += 1
                order.update(repr(got).encode())
                found.order = order.hexdigest()[:16]
                if got != wanted:
                    at = next((i for i, pair in enumerate(zip(wanted, got)) if pair[0] != pair[1]), len(got))
                    raise Failed(f"{what}: the order differs from element {at} on")


if __name__ == "__main__":
    parser = program.parser(__doc__)
    parser.add_argument("--seed", default=1, type=int)
    program.conclude(parser.parse_args(), run, kills=0, order="none")
