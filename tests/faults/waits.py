#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""More workers than slots to request, and a trainer that holds all it gets: reading goes on to the end.

tests/cluster/waits_test.cc has more such circles in one process; here the slots are shared between processes.
"""
import program
from fleet import Failed, Fleet, differences

COUNT = 150


def read(fleet, words):
    trainer = fleet.start_trainer()
    log = fleet.folder / f"{words}.log"
    answer = trainer.ask(f"open job-{words} {COUNT} {words} {log} {log}.checkpoint")
    while answer != "end":
        if answer.startswith("error"):
            raise Failed(f"{words} words: {answer}")
        answer = trainer.ask("next", 60)
    if (answer := trainer.ask("look")) != "same":
        raise Failed(f"{words} words: the kept elements changed: {answer}")
    lost, doubled = differences([log], COUNT)
    if lost or doubled:
        raise Failed(f"{words} words: lost={lost} doubled={doubled}")


def run(args, folder, _):
    with Fleet(args.bin, folder, args.protocol, 60000, window=1) as fleet:
        for _ in range(3):
            fleet.start_worker()
        for words in (1, 300, 2000, 20000):  # copied out, in frames, in slots of their own
            read(fleet, words)


if __name__ == "__main__":
    program.conclude(program.parser(__doc__).parse_args(), run)
