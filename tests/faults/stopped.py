#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A process is stopped (SIGSTOP) in the middle of a job and goes on later (SIGCONT).

trainer-too-long: a trainer that holds elements, for longer than its time-out. Others get the elements
    that it had not committed. When it goes on, the bytes of its elements are unchanged, and it gets no
    further element: its session is refused.
trainer: one that holds elements, for 10 s of a longer time-out. Then it reads on.
worker: for 10 s, longer than its time-out. Its partitions move to the other; then it is back.
"""
import time

import program
from fleet import Failed, Fleet, differences, shared_memory

COUNT, WORDS = 2000, 20000
HELD = 8


def expect(process, order, expected, seconds=60):
    answer = process.ask(order, seconds)
    if not answer.startswith(expected):
        raise Failed(f"{process.name} answered '{order}' with '{answer}', not '{expected}'")
    return answer


def open_job(fleet, trainer, name):
    expect(trainer, f"open job {COUNT} {WORDS} {fleet.folder}/{name}.log {fleet.folder}/{name}.checkpoint", "open")


def expect_each_once(fleet):
    lost, doubled = differences([fleet.folder / "one.log", fleet.folder / "other.log"], COUNT)
    if lost or doubled:
        raise Failed(f"lost={lost} doubled={doubled}")


def end(*trainers):
    for trainer in trainers:
        expect(trainer, "look", "same")
        expect(trainer, "drop", "dropped")
        expect(trainer, "close", "closed")
        deadline = time.monotonic() + 20  # links are destroyed in the background
        while left := trainer.holds()["segments"]:
            if time.monotonic() > deadline:
                raise Failed(f"{trainer.name} still maps {left} segments")
            time.sleep(0.02)


def trainer_too_long(fleet, one, other):
    for _ in range(HELD):
        expect(one, "next", "element ")
    expect(one, "commit", "committed")
    for _ in range(HELD):  # these are not committed
        expect(one, "next", "element ")
    one.pause()
    expect(other, "all", "end")  # past the time-out of the stopped one
    log = fleet.folder / "one.log"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:1 + HELD]))  # only what it had committed
    expect_each_once(fleet)
    one.go_on()
    expect(one, "look", "same")
    expect(one, "next", "error FAILED_PRECONDITION")


def trainer(fleet, one, other):
    for _ in range(HELD):
        expect(one, "next", "element ")
    one.pause()
    other.say("all")
    time.sleep(10)
    one.go_on()
    expect(one, "look", "same")
    expect(one, "all", "end")
    if (answer := other.hear(60)) != "end":
        raise Failed(f"{other.name}: {answer}")
    expect_each_once(fleet)


def worker(fleet, one, other):
    second = fleet.start_worker()
    for reader in (one, other):
        for _ in range(HELD):
            expect(reader, "next", "element ")
    second.pause()
    for reader in (one, other):
        reader.say("all")
    time.sleep(10)
    second.go_on()
    for reader in (one, other):
        if (answer := reader.hear(60)) != "end":
            raise Failed(f"{reader.name}: {answer}")
    expect_each_once(fleet)


# The function, and the trainers' time-out in milliseconds.
CASES = {"trainer-too-long": (trainer_too_long, 3000), "trainer": (trainer, 60000), "worker": (worker, 60000)}


def run(args, folder, _):
    names = shared_memory()
    happens, client_timeout_ms = CASES[args.case]
    with Fleet(args.bin, folder, args.protocol, client_timeout_ms) as fleet:
        fleet.start_worker()
        trainers = [fleet.start_trainer(), fleet.start_trainer()]
        for process, name in zip(trainers, ("one", "other")):
            open_job(fleet, process, name)
        happens(fleet, *trainers)
        end(*trainers)
    if left := shared_memory() - names:
        raise Failed(f"{left} still in /dev/shm")


if __name__ == "__main__":
    parser = program.parser(__doc__)
    parser.add_argument("case", choices=CASES)
    program.conclude(parser.parse_args(), run)
