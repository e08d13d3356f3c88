#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The network between one trainer and one worker fails, while both reach everybody else.

Each process has a host of its own (tools/soak/network.py), and trainers read jobs of every mode. Then packets between a
trainer of each job and one worker are dropped, for good. All jobs are read to their ends, with each record once.
The last line reports the result. Skipped where namespaces are not permitted.
"""
import re

import program
from fleet import Failed, Fleet, differences_of, history
from network import Network

COUNT, WORDS, WORKERS = 1500, 500, 3
STUCK = 240  # seconds without an end that only a broken program takes

# Flags of each job's trainers.
JOBS = {
    "shared": [[], []],
    "taken": [["--keep-taken"], ["--keep-taken"]],
    "dynamic": [[]],
    "at_least_once": [["--at-least-once"]],
    "off": [["--mode", "off"]],
    "data": [["--mode", "data"]],
    "ordered": [["--ordered"]],
    "rounds": [["--consumers", 2, "--consumer", 0], ["--consumers", 2, "--consumer", 1]],
}
GIVEN_BACK = {"shared", "taken"}  # the other trainer gets the elements in doubt before the link is known to be down


class Job:
    def __init__(self, fleet, name):
        self.name = name
        self.trainers = [fleet.start_trainer("--step-us", 500, *flags) for flags in JOBS[name]]
        self.logs = [fleet.folder / f"{name}-{i}.log" for i in range(len(self.trainers))]
        for trainer, log in zip(self.trainers, self.logs):
            trainer.expect(f"open {name} {COUNT} {WORDS} {log} {log}.state", "open", seconds=60)

    def say(self, order):
        for trainer in self.trainers:
            trainer.say(order)

    def expect(self, answer):
        for trainer in self.trainers:
            if (heard := trainer.hear(STUCK)) != answer:
                raise Failed(f"{trainer.name} of {self.name}: {heard}")

    def expect_each_once(self):
        reads = [read for log in self.logs for read in history(log)]
        for partition in range(1, WORKERS + 1) if self.name == "off" else [None]:
            its = [read for read in reads if partition in (None, read.partition)]
            lost, doubled = differences_of(its, COUNT)
            if lost or (doubled and self.name != "at_least_once"):
                raise Failed(f"{self.name}: lost={lost} doubled={doubled}")


def run(args, folder, found):
    with Network() as network, Fleet(args.bin, folder, args.protocol, 60000, network=network) as fleet:
        worker = [fleet.start_worker() for _ in range(WORKERS)][0]
        jobs = [Job(fleet, name) for name in JOBS]
        for job in jobs:
            job.say(f"read {COUNT // 5 // len(job.trainers)}")
            job.expect("read")
        for job in jobs:
            network.cut(job.trainers[0].name, worker.name)
        for job in jobs:
            job.say("all")
        for job in jobs:
            job.expect("end")
            job.expect_each_once()
            found.jobs += 1
        found.moved = len(re.findall(" unreached ", fleet.dispatcher.errors.read_text()))
        if found.moved < len(JOBS.keys() - GIVEN_BACK):
            raise Failed("not every job had partitions at the other end of its cut link, so the test proves nothing")


if __name__ == "__main__":
    program.conclude(program.parser(__doc__).parse_args(), run, jobs=0, moved=0)
