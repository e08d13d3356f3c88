#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tf.data service was seen to do when a process is killed with kill -9, repeated here row by row.

A slow trainer reads numbers with 64 KiB each from two workers. After a third of them one
process is killed, and is started again 2 s later or not. Each row ends, or gives an error
within the trainer's time-out; nothing is lost or duplicated. Prints a line for each row with what
the trainer saw; docs/testing.md has the table.
"""
import collections
import time

import program
from fleet import Failed, Fleet, history

WORDS = 8192
STUCK = 120  # seconds without an end that only a broken program takes
DOWN = 2  # seconds until a process is started again
TIMEOUT = 10  # seconds that trainers tolerate an unreachable dispatcher


class Row:
    """One case: how the trainers read, which process is killed, and what happens."""

    def __init__(self, name, killed=None, back=None, workers=2, flags=(), consumers=1, journal=True, copies=1, ends=True):
        self.name, self.killed, self.back, self.workers = name, killed, back, workers
        self.flags, self.consumers, self.journal = list(flags), consumers, journal
        self.copies = copies  # of each number
        self.ends = ends  # or gives an error


ROWS = [
    Row("no fault"),
    Row("one of two workers, stays down", "worker"),
    Row("one of two workers, a new one at another port", "worker", "elsewhere"),
    Row("one of two workers, back at its port", "worker", "there"),
    Row("the same under shuffle(1000)", "worker", "there", flags=["--shuffle", 1000]),
    Row("the only worker, back at its port", "worker", "there", workers=1),
    Row("OFF, one of two workers, back at its port", "worker", "there", flags=["--mode", "off"], copies=None),
    Row("dispatcher, back with its journal", "dispatcher", "there"),
    Row("dispatcher, back without a journal", "dispatcher", "there", journal=False, ends=False),
    Row("dispatcher, stays down", "dispatcher", ends=False),
    Row("rounds of two, one of two workers, stays down", "worker", consumers=2),
    Row("rounds of two, one of two workers, back at its port", "worker", "there", consumers=2),
]


class Case:
    def __init__(self, row, args, fleet):
        self.row, self.count, self.fleet = row, args.count, fleet
        self.workers = [fleet.start_worker() for _ in range(row.workers)]
        flags = ["--step-us", args.step_us, "--timeout-s", TIMEOUT, *row.flags]
        self.trainers = [fleet.start_trainer(*flags, *(["--consumer", i, "--consumers", row.consumers]
                                                       if row.consumers > 1 else []), commit_every=1 << 40)
                         for i in range(row.consumers)]
        self.logs = [fleet.folder / f"{i}.log" for i in range(row.consumers)]

    def run(self):
        """Returns the line of this row; raises Failed if the result is wrong."""
        for trainer, log in zip(self.trainers, self.logs):
            trainer.expect(f"open job {self.count} {WORDS} {log} {log}.state", "open")
        for trainer in self.trainers:
            trainer.say(f"read {self.count // 3 // len(self.trainers)}")
        for trainer in self.trainers:
            if (answer := trainer.hear(STUCK)) != "read":
                raise Failed(f"{trainer.name}: {answer}")
        for trainer in self.trainers:
            trainer.say("read 1000000000")
        self.strike()
        answers = [trainer.hear(STUCK) for trainer in self.trainers]
        ended_at = time.time()
        reads = [history(log) for log in self.logs]
        lost, doubled = self.differences([read for of_one in reads for read in of_one])
        silence = max(b.at - a.at for of_one in reads for a, b in zip(of_one, of_one[1:])) / 1e6
        last = max(read.at for of_one in reads for read in of_one) / 1e6
        what = "ends" if set(answers) == {"end"} else answers[0]
        if doubled or self.row.ends != (what == "ends") or (self.row.ends and lost):
            raise Failed(f"{self.row.name}: lost={lost} doubled={doubled}: {answers}")
        if len({len(of_one) for of_one in reads}) > 1 and self.count % len(reads) == 0:
            raise Failed(f"{self.row.name}: {[len(of_one) for of_one in reads]} rounds")
        return (f"lost {lost if self.row.ends else 'nothing silently'}, doubled {doubled}; silent {silence:.2f} s at most; "
                f"{ended_at - last:.2f} s after the last element: {what[:160]}")

    def strike(self):
        if self.row.killed == "worker":
            self.workers[0].kill()
        elif self.row.killed == "dispatcher":
            self.fleet.dispatcher.kill()
        if not self.row.back:
            return
        time.sleep(DOWN)
        if self.row.killed == "dispatcher":
            self.fleet.start_dispatcher()
        else:
            self.fleet.begin_worker(self.workers[0].port if self.row.back == "there" else 0)

    def differences(self, reads):
        """Returns (lost, doubled); under OFF for each partition, of which there were two from the start."""
        groups = collections.defaultdict(collections.Counter)
        for read in reads:
            groups[read.partition if self.row.copies is None else 0][read.number] += 1
        if self.row.copies is None and len(groups) < self.row.workers:
            raise Failed(f"{self.row.name}: {len(groups)} partitions")
        more = collections.Counter(range(self.count))
        return sum((more - group).total() for group in groups.values()), sum((group - more).total() for group in groups.values())


def run(args, folder, found):
    failed = []
    for row in ROWS:
        its = folder / str(found.rows)
        its.mkdir()
        journal = ["--work-dir", its / "journal", "--fault-tolerant-mode"] if row.journal else []
        with Fleet(args.bin, its, args.protocol, client_timeout_ms=60000, dispatcher_flags=journal) as fleet:
            try:
                words = Case(row, args, fleet).run()
            except Failed as failure:
                failed.append(row.name)
                words = f"FAILED {failure}; logs in {its}"
        print(f"  {row.name}: {words}", flush=True)
        found.rows += 1
    if failed:
        raise Failed("; ".join(failed))


if __name__ == "__main__":
    parser = program.parser(__doc__)
    parser.add_argument("--count", type=int, default=12000, help="numbers")
    parser.add_argument("--step-us", type=int, default=500, help="microseconds of a trainer's step")
    program.conclude(parser.parse_args(), run, rows=0)
