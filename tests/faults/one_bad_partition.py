#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A partition whose workers die does not take the fleet along.

The worker that has partition 1 of one job is killed with kill -9 at once, again and again, and another is
started. After a few kills that job ends with an error that names the partition; another job that reads
on the same workers has each record once. The last line reports the result.
"""
import re
import time

import program
from fleet import Failed, Fleet, differences

WORKERS = 3
COUNT = 3000
MOST_KILLS = 12  # four are expected


class Events:
    """The lines that a dispatcher has written to its standard error."""

    def __init__(self, dispatcher):
        self.dispatcher = dispatcher

    def last(self, pattern):
        found = re.findall(pattern, self.dispatcher.errors.read_text())
        return found[-1] if found else None

    def wait(self, pattern, other_than=None, seconds=30):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = self.last(pattern)
            if found is not None and found != other_than:
                return found
            time.sleep(0.01)
        return None


def run(args, folder, found):
    with Fleet(args.bin, folder, args.protocol, 10000, window=1) as fleet:
        events = Events(fleet.dispatcher)
        workers = {worker.port: worker for worker in (fleet.start_worker() for _ in range(WORKERS))}
        bad = fleet.start_trainer("--keep-taken")
        bad.expect(f"open bad {COUNT} 1 {folder / 'bad.log'} {folder / 'bad.state'}", "open")
        bad.expect("read 1", "read")  # and no more: nothing new is received
        job = events.wait(r"client_joined .*iteration=(\d+)")
        good = fleet.start_trainer("--keep-taken", "--step-us", 2000)
        good.expect(f"open good {COUNT} 1 {folder / 'good.log'} {folder / 'good.state'}", "open")
        good.say("all")
        placed = None
        while events.last("partition_kills") is None and found.kills < MOST_KILLS:
            placed = events.wait(rf"assigned iteration={job} partition=1 placement=(\d+) worker=(\w+)", placed)
            if placed is None:
                break
            port = events.last(rf"joined worker={placed[1]} address=localhost:(\d+)")
            workers.pop(port).kill()
            found.kills += 1
            worker = fleet.start_worker()
            workers[worker.port] = worker
            if events.wait(rf"lost worker={placed[1]}") is None:
                raise Failed("a killed worker was not declared lost")
        answer = bad.ask("all", seconds=30)
        if "workers died while they ran it" not in answer:
            raise Failed(f"after {found.kills} kills the job's reader got '{answer}'")
        if good.hear(120) != "end":
            raise Failed("the other job did not end")
        lost, doubled = differences([folder / "good.log"], COUNT)
        if lost or doubled:
            raise Failed(f"the other job: lost={lost} doubled={doubled}")


if __name__ == "__main__":
    program.conclude(program.parser(__doc__).parse_args(), run, kills=0)
