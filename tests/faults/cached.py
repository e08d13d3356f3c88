#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills workers with kill -9 while they fill or read a cache, again and again.

A dispatcher, two workers, and a trainer that reads several passes over numbers
that the workers cache: in memory, or in files. In each round a worker is killed
in the first pass or in a later one, and with files also while one of them is
half written; its successor is started. Then each number must be in the trainer's
history once a pass. The last line reports the result.
"""
import random
import shutil

import program
from fleet import Failed, Fleet, differences

COUNT, WORDS, PASSES = 3000, 200, 4
STUCK = 90  # seconds without an end that only a broken program takes
MOMENTS = ["filling", "reading"]


class Cached:
    def __init__(self, seed, fleet, store, found):
        self.fleet, self.store, self.found = fleet, store, found
        self.rng = random.Random(seed)
        self.caches = fleet.folder / "caches"
        self.workers = [fleet.start_worker() for _ in range(2)]
        self.trainer = fleet.start_trainer("--cache", "memory" if store == "memory" else self.caches,
                                           "--passes", PASSES)

    def round(self, number):
        self.caches.mkdir()
        job = f"{self.store}-{number}"
        log = self.fleet.folder / f"{job}.log"
        answer = self.trainer.ask(f"open {job} {COUNT} {WORDS} {log} {self.fleet.folder}/{job}.checkpoint")
        if answer != "open":
            raise Failed(f"{self.trainer.name}: {answer}")
        self.strike(number)
        if (answer := self.trainer.hear(STUCK)) != "end":
            raise Failed(f"{self.trainer.name}: {answer}")
        if (answer := self.trainer.ask("close")) != "closed":
            raise Failed(f"{self.trainer.name}: {answer}")
        lost, doubled = differences([log], COUNT, PASSES)
        self.found.lost, self.found.doubled = self.found.lost + lost, self.found.doubled + doubled
        if lost or doubled:
            raise Failed(f"round {number}: lost={lost} doubled={doubled}")
        log.unlink()
        shutil.rmtree(self.caches)

    def strike(self, number):
        """Kills a worker once the trainer has read this many elements and reads on; starts its successor."""
        moment = MOMENTS[number % len(MOMENTS)]
        first, last = (1, COUNT * 3 // 4) if moment == "filling" else (COUNT, COUNT * (PASSES - 1))
        at = self.rng.randrange(first, last)
        if (answer := self.trainer.ask(f"read {at}", STUCK)) != "read":
            raise Failed(f"{self.trainer.name}: {answer}")
        self.trainer.say("all")
        half_written = self.half_written()
        i = self.rng.randrange(2)
        victim = self.workers[i]
        victim.kill()
        self.found.kills += 1
        self.found.amid_writing += bool(half_written)
        print(f"  {self.store} {number}: kill -9 {victim.name} {moment}, {at} of {COUNT * PASSES} read, "
              f"files half written: {len(half_written)}", flush=True)
        self.workers[i] = self.fleet.start_worker()

    def half_written(self):
        return list(self.caches.glob("*.partial*"))


def run(args, folder, found):
    for store in ("memory", "disk"):
        its = folder / store
        its.mkdir()
        with Fleet(args.bin, its, args.protocol, client_timeout_ms=60000) as fleet:
            cached = Cached(args.seed, fleet, store, found)
            for number in range(args.kills):
                cached.round(number)
    if not found.amid_writing:
        raise Failed("no worker was killed while a file was half written, so the test proves nothing")


if __name__ == "__main__":
    parser = program.parser(__doc__)
    parser.add_argument("--kills", type=int, default=10, help="kills for each store")
    parser.add_argument("--seed", type=int, default=1)
    program.conclude(parser.parse_args(), run, kills=0, amid_writing=0, lost=0, doubled=0)
