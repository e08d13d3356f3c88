#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a trainer, which comes back alone, and workers with kill -9 under coordinated reads of 2 and 4 trainers.

All trainers see the same row of the same partition in each round, end at the same
round, and have every element once; two trainers of a group have the same elements. The
last line reports the result.
"""
import pathlib
import random

import program
from fleet import Failed, Fleet, differences, history

COUNT = 6001  # leaves a remainder for 2 and for 4


def read(fleet, consumers, words, workers, rng, group=1):
    name = f"{consumers}-{group}-{words}"
    count = consumers * group

    def start(i):
        return fleet.start_trainer("--consumer", i // group, "--consumers", consumers, "--group-size", group,
                                   "--group-member", i % group, commit_every=50)

    trainers = [start(i) for i in range(count)]
    logs = [fleet.folder / f"{name}-{i}.log" for i in range(count)]

    def opening(i):
        return f"open rounds-{name} {COUNT} {words} {logs[i]} {logs[i]}.checkpoint"

    for i, trainer in enumerate(trainers):
        if (answer := trainer.ask(opening(i))) != "open":
            raise Failed(f"{trainer.name}: {answer}")
    first = rng.randrange(100, 800)
    for trainer in trainers:
        trainer.say(f"read {first}")
    for trainer in trainers:
        if (answer := trainer.hear(120)) != "read":
            raise Failed(f"{trainer.name}: {answer}")
    # One dies while the others wait, and goes on alone from its committed state.
    for trainer in trainers:
        if (answer := trainer.ask("commit")) != "committed":
            raise Failed(f"{trainer.name}: {answer}")
    alone = rng.randrange(count)
    trainers[alone].kill()
    trainers[alone] = start(alone)
    if (answer := trainers[alone].ask(opening(alone))) != "resumed":
        raise Failed(f"{trainers[alone].name}: {answer}")
    if not (answer := trainers[alone].ask("next")).startswith("element"):  # while the others wait
        raise Failed(f"{trainers[alone].name}: {answer}")
    trainers[alone].ask("drop")
    for trainer in trainers:
        trainer.say("all")
    victim = rng.randrange(len(workers))
    workers[victim].kill()
    workers[victim] = fleet.start_worker()
    for trainer in trainers:
        if (answer := trainer.hear(120)) != "end":
            raise Failed(f"{trainer.name}: {answer}")
    rounds = [pathlib.Path(f"{log}.rounds").read_text().splitlines() for log in logs]
    if any(len(of) != len(rounds[0]) for of in rounds):
        raise Failed(f"{[len(of) for of in rounds]} rounds")
    for number, of_all in enumerate(zip(*rounds)):
        whole = number < (COUNT // consumers) - 2 * consumers * len(workers)  # the last ones mix partitions
        if any(int(of.split()[0]) != number for of in of_all) or (whole and len(set(of_all)) != 1):
            raise Failed(f"round {number} is torn: {of_all}")
    for member in range(group):
        lost, doubled = differences(logs[member::group], COUNT)
        if lost or doubled:
            raise Failed(f"member {member}: lost={lost} doubled={doubled}")
    for i, log in enumerate(logs):
        if [read.number for read in history(log)] != [read.number for read in history(logs[i // group * group])]:
            raise Failed(f"two of group {i // group} have read different elements")
    for trainer in trainers:
        trainer.ask("close")
    return len(rounds[0])


def run(args, folder, found):
    rng = random.Random(args.seed)
    with Fleet(args.bin, folder, args.protocol, 60000) as fleet:
        workers = [fleet.start_worker() for _ in range(2)]
        for consumers in (2, 4):
            for words in (1, 2000, 20000):
                found.rounds += read(fleet, consumers, words, workers, rng)
        for words in (1, 20000):
            found.rounds += read(fleet, 1, words, workers, rng, group=2)


if __name__ == "__main__":
    parser = program.parser(__doc__)
    parser.add_argument("--seed", default=1, type=int)
    program.conclude(parser.parse_args(), run, rounds=0)
