#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two trainers of one job, one of which takes three times as long for a step; by hand, since it goes by the clock.

Their steps sleep, and each may have one element outstanding. Then their shares are 1 : 3 within 10 %, and when one
has seen the end, the other gets at most one more. The last line says how it went.
"""
import argparse
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "soak"))
from fleet import Failed, Fleet, differences, history  # noqa: E402

COUNT, WORDS = 1000, 2000
STEPS_MS = (60, 20)


def run(fleet):
    """(elements of each, those given out after the first end)."""
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
    reads = [history(log) for log in logs]  # each is logged behind its step
    return [len(of_one) for of_one in reads], sum(
        read.at - step * 1000 > min(ends) for step, of_one in zip(STEPS_MS, reads) for read in of_one)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin", type=pathlib.Path)
    parser.add_argument("--protocol", default="shm")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-shares-") as folder:
        with Fleet(args.bin.resolve(), pathlib.Path(folder), args.protocol, 60000, window=1) as fleet:
            (slow, fast), late = run(fleet)
    ok = abs(fast / slow / 3 - 1) <= 0.1 and late <= 1
    print(f"shares: {'ok' if ok else 'failed'} protocol={args.protocol} {slow} and {fast} of {COUNT}, 1 : {fast / slow:.2f}; "
          f"{late} elements after the first end")
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
