#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""More workers than slots to ask for, and a trainer that keeps all it gets: reading goes on to the end.

tests/cluster/waits_test.cc has more such circles in one process; here the slots lie between processes.
"""
import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "soak"))
from fleet import Failed, Fleet, differences  # noqa: E402

COUNT = 150


def run(fleet, words):
    trainer = fleet.start_trainer()
    log = fleet.folder / f"{words}.log"
    answer = trainer.ask(f"open job-{words} {COUNT} {words} {log} {log}.checkpoint")
    while answer != "end":
        if answer.startswith("error"):
            raise Failed(f"{words} words: {answer}")
        answer = trainer.ask("next", 60)
    if (answer := trainer.ask("look")) != "same":
        raise Failed(f"{words} words: what was kept has {answer}")
    lost, doubled = differences([log], COUNT)
    if lost or doubled:
        raise Failed(f"{words} words: lost={lost} doubled={doubled}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin", type=pathlib.Path)
    parser.add_argument("--protocol", default="shm")
    args = parser.parse_args()
    why = ""
    with tempfile.TemporaryDirectory(prefix="penstock-waits-") as folder:
        try:
            with Fleet(args.bin.resolve(), pathlib.Path(folder), args.protocol, 60000, window=1) as fleet:
                for _ in range(3):
                    fleet.start_worker()
                for words in (1, 300, 2000, 20000):  # copied out, in frames, in slots of their own
                    run(fleet, words)
        except Failed as failure:
            why = f" {failure}"
    print(f"waits: {'failed' if why else 'ok'} protocol={args.protocol}{why}")
    sys.exit(1 if why else 0)


if __name__ == "__main__":
    main()
