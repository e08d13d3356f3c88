#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills workers -9 while they fill a cache or read it, again and again.

A dispatcher, two workers, and a trainer that reads several passes over numbers
that the workers cache: in memory, or in files. In each round a worker is killed
in the first pass or in a later one, and with files also while one of them is
half written; its successor is started. Then: each number is in the trainer's
history once a pass. The last line says how it went.
"""
import argparse
import pathlib
import random
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "soak"))
from fleet import Failed, Fleet, differences  # noqa: E402

COUNT, WORDS, PASSES = 3000, 200, 4
STUCK = 90  # seconds without an end that only a broken program takes
MOMENTS = ["filling", "reading"]


class Cached:
    def __init__(self, args, fleet, store):
        self.fleet, self.store = fleet, store
        self.rng = random.Random(args.seed)
        self.caches = fleet.folder / "caches"
        self.workers = [fleet.start_worker() for _ in range(2)]
        self.trainer = fleet.start_trainer("--cache", "memory" if store == "memory" else self.caches,
                                           "--passes", PASSES)
        self.lost = self.doubled = self.kills = self.amid_writing = 0

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
        self.lost, self.doubled = self.lost + lost, self.doubled + doubled
        if lost or doubled:
            raise Failed(f"round {number}: lost={lost} doubled={doubled}")
        log.unlink()
        shutil.rmtree(self.caches)

    def strike(self, number):
        """Kills a worker once the trainer has read so many elements and reads on; starts its successor."""
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
        self.kills += 1
        self.amid_writing += bool(half_written)
        print(f"  {self.store} {number}: kill -9 {victim.name} {moment}, {at} of {COUNT * PASSES} read, "
              f"files half written: {len(half_written)}", flush=True)
        self.workers[i] = self.fleet.start_worker()

    def half_written(self):
        return list(self.caches.glob("*.partial*"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin", type=pathlib.Path)
    parser.add_argument("--protocol", default="shm")
    parser.add_argument("--kills", type=int, default=10, help="of each store")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    why = ""
    lost = doubled = kills = amid_writing = 0
    for store in ("memory", "disk"):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-cached-"))
        print(f"cached: store={store} seed={args.seed} logs in {folder}", flush=True)
        with Fleet(args.bin.resolve(), folder, args.protocol, client_timeout_ms=60000) as fleet:
            cached = Cached(args, fleet, store)
            try:
                for number in range(args.kills):
                    cached.round(number)
                if store == "disk" and not cached.amid_writing:
                    raise Failed("no worker was killed while a file was half written: this shows nothing")
            except Failed as failure:
                why = f" {failure}"
        lost, doubled, kills = lost + cached.lost, doubled + cached.doubled, kills + cached.kills
        amid_writing += cached.amid_writing
        if why:
            break
        shutil.rmtree(folder)
    print(f"cached: {'failed' if why else 'ok'} protocol={args.protocol} seed={args.seed} kills={kills} "
          f"amid_writing={amid_writing} lost={lost} doubled={doubled}{why}")
    sys.exit(1 if why else 0)


if __name__ == "__main__":
    main()
