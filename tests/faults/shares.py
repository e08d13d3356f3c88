#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two trainers of one job, one of which takes three times as long for a step. Run by hand: it depends on the clock.

Their steps sleep, and each may have one element outstanding. Then their shares are 1 : 3 within 10 %, and when one
has seen the end, the other gets at most one more. The last line reports the result.
"""
import threading
import time

import program
from fleet import Failed, Fleet, differences, history

COUNT, WORDS = 1000, 2000
STEPS_MS = (60, 20)


def shares(fleet):
    """Returns (elements of each, elements given out after the first end)."""
    for _ in range(2):
        fleet.start_worker()
    trainers = [fleet.start_trainer("--step-us", step * 1000, commit_every=1 << 40) for step in STEPS_MS]
    logs = [fleet.folder / f"{step}.log" for step in STEPS_MS]
    for trainer, log in zip(trainers, logs):
        trainer.expect(f"open shares {COUNT} {WORDS} {log} {log}.state", "open")
    ends = [0, 0]

    def read(i):
        if trainers[i].ask(f"read {COUNT + 1}", 120) == "end":
            ends[i] = time.time_ns() // 1000

    readers = [threading.Thread(target=read, args=(i,)) for i in range(2)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    lost, doubled = differences(logs, COUNT)
    if lost or doubled or not all(ends):
        raise Failed(f"lost={lost} doubled={doubled}")
    reads = [history(log) for log in logs]  # each is logged after its step
    return [len(of_one) for of_one in reads], sum(
        read.at - step * 1000 > min(ends) for step, of_one in zip(STEPS_MS, reads) for read in of_one)


def run(args, folder, found):
    with Fleet(args.bin, folder, args.protocol, 60000, window=1) as fleet:
        (found.slow, found.fast), found.late = shares(fleet)
    if abs(found.fast / found.slow / 3 - 1) > 0.1 or found.late > 1:
        raise Failed(f"the shares of {COUNT} elements are 1 : {found.fast / found.slow:.2f}; "
                     f"{found.late} elements came after the first end")


if __name__ == "__main__":
    program.conclude(program.parser(__doc__).parse_args(), run)
