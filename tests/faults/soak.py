#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads small and large elements for a long time and checks that memory stays flat.

A dispatcher, two workers and a reader, which checks every element. Their resident
memory, descriptors and threads are sampled each second. After a warm-up of a tenth of
the time, the second half's largest sample may exceed the first's only by SPARE. The
last line reports the result.

With --change-every, the service changes and fails meanwhile: the journal is in etcd, a
standby waits, and in turn the leader is killed, a worker drains and is replaced, the
leader is stopped and replaced, and the leader is killed again. Two more trainers read job
after job, and each element must come once. Of dispatchers and of the replaced worker, the
process that has that place is sampled.

With --other too, the service is upgraded and goes back again and again: in turn, each
process that takes the place of another is from that folder of programs and from --bin.
The two trainers are one of each. Both releases must have standbys. The first leader is
from --other, the earlier release, so the journal is in its format, which is not finalised.
"""
import contextlib
import itertools
import pathlib
import signal
import time

import program
import etcds
from dispatchers import Dispatchers
from fleet import MOST_OF_GRPC, Failed, Fleet, differences
from waiting import await_true

# How far the second half may exceed the first. Allocators keep some memory, and slots are made when more elements than
# ever before are on their way at once.
SPARE = {"MiB of its own": 4, "MiB shared": 16, "segments": 40, "descriptors of segments": 40, "descriptors": 2,
         "threads": 0, "threads of gRPC": MOST_OF_GRPC}


class Held:
    """The resources of one process, or of those that have one place one after the other, second by second."""

    def __init__(self, name, process):
        self.name, self.process, self.samples = name, process, []

    def sample(self):
        process = self.process()
        self.samples.append({**process.memory(), **process.holds()})

    def growth(self, what):
        """Returns by how much the largest sample of the second half exceeds that of the first, without the warm-up."""
        values = [sample[what] for sample in self.samples]
        first, second = values[len(values) // 10:len(values) // 2], values[len(values) // 2:]
        return max(second) - max(first)

    def complaints(self):
        return [f"{self.name} holds {self.growth(what):.1f} {what} more in the second half than in the first"
                for what in SPARE if self.growth(what) > SPARE[what]]

    def words(self):
        first, last = self.samples[len(self.samples) // 10], self.samples[-1]
        return f"{self.name} " + ", ".join(
            f"{first[what]:.1f} → {last[what]:.1f} {what}" for what in ("MiB of its own", "MiB shared"))


class Changes:
    """Changes leaders and workers in turn, while two trainers read job after job."""

    def __init__(self, fleet, workers, args, found):
        self.fleet, self.workers, self.found, self.every = fleet, workers, found, args.change_every
        releases = [args.bin, args.other] if args.other else [args.bin]
        self.dispatcher_releases, self.worker_releases = itertools.cycle(releases), itertools.cycle(releases)
        self.trainer_releases = itertools.cycle(releases)
        fleet.use(next(self.dispatcher_releases))
        self.dispatchers = Dispatchers(fleet)
        self.turns = itertools.cycle([self.kill_leader, self.replace_worker, self.stop_leader, self.kill_leader])
        self.due = time.monotonic() + self.every
        self.count = args.job

    def begin(self):
        """REQUIRES: workers know the address of the standby."""
        self.trainers = [self.start_trainer() for _ in range(2)]
        self.begin_job()

    def start_trainer(self):
        self.fleet.use(next(self.trainer_releases))
        return self.fleet.start_trainer("--step-us", 1000, commit_every=100)

    def start_worker(self):
        self.fleet.use(next(self.worker_releases))
        return self.fleet.start_worker()

    def begin_job(self):
        job = f"job-{self.found.jobs}"
        self.logs = [self.fleet.folder / f"{job}-{i}.log" for i in range(2)]
        for trainer, log in zip(self.trainers, self.logs):
            trainer.expect(f"open {job} {self.count} 1 {log} {log}.state", "open", seconds=60)
            trainer.say("all")

    def turn(self):
        """Ends what is due."""
        if not any(trainer.lines.empty() for trainer in self.trainers):
            self.end_job()
            self.begin_job()
        if time.monotonic() >= self.due:
            next(self.turns)()
            self.due = time.monotonic() + self.every

    def end_job(self):
        for trainer in self.trainers:
            if (answer := trainer.hear(120)) != "end":
                raise Failed(f"{trainer.name}: {answer}")
            trainer.expect("close", "closed")
        lost, doubled = differences(self.logs, self.count)
        if lost or doubled:
            raise Failed(f"job-{self.found.jobs}: lost={lost} doubled={doubled}")
        for path in self.fleet.folder.glob(f"job-{self.found.jobs}-*"):
            path.unlink()
        self.found.jobs += 1

    def kill_leader(self):
        self.dispatchers.leader.kill()
        self.end_of_leader()

    def stop_leader(self):
        self.dispatchers.leader.child.send_signal(signal.SIGTERM)
        self.end_of_leader()

    def end_of_leader(self):
        began = time.monotonic()
        self.dispatchers.await_takeover()
        print(f"  {self.dispatchers.standby.name} leads after {time.monotonic() - began:.1f} s", flush=True)
        self.dispatchers.leader.child.wait(60)
        self.fleet.use(next(self.dispatcher_releases))
        self.dispatchers.replace_leader()
        self.found.leaders += 1

    def replace_worker(self):
        before, self.workers[-1] = self.workers[-1], self.start_worker()
        before.child.terminate()
        await_true(lambda: before.child.poll() is not None, f"{before.name} was told to drain, but still runs")
        if code := before.child.returncode:
            raise Failed(f"{before.name} was told to drain, but exited with {code}")
        self.found.workers += 1


def run(args, folder, found):
    with contextlib.ExitStack() as stack:
        flags = stack.enter_context(etcds.Etcds(folder)).journal_flags() if args.change_every else []
        fleet = stack.enter_context(Fleet(args.other or args.bin, folder, args.protocol, client_timeout_ms=60000,
                                          dispatcher_flags=flags))
        workers = []
        changes = Changes(fleet, workers, args, found) if args.change_every else None
        workers += [changes.start_worker() if changes else fleet.start_worker() for _ in range(2)]
        reader = fleet.start("reader", args.bin / "fault_soak_reader", "--service", fleet.service,
                             "--protocol", args.protocol, "--rate", args.rate)
        held = [Held(process().name, process) for process in (
            lambda: reader, lambda: workers[0], lambda: workers[1],
            lambda: changes.dispatchers.leader if changes else fleet.dispatcher)]
        if changes:
            changes.begin()
        soak(args, found, reader, held, changes)
    print("\n".join(f"  {each.words()}" for each in held))
    if complaints := [line for each in held for line in each.complaints()]:
        raise Failed("; ".join(complaints))


def soak(args, found, reader, held, changes):
    end = time.monotonic() + args.seconds
    while time.monotonic() < end or found.elements < args.elements:
        second = time.monotonic() + 1
        while time.monotonic() < second:
            found.elements = int(reader.hear_match(r"read (\d+)", 60)[1])
        for each in held:
            each.sample()
        if changes:
            changes.turn()


if __name__ == "__main__":
    parser = program.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="minimum duration in seconds")
    parser.add_argument("--elements", type=int, default=10**7, help="minimum number of elements")
    parser.add_argument("--rate", type=float, default=0, help="maximum elements per second; 0: no limit")
    parser.add_argument("--change-every", type=float, default=0, help="seconds between two changes; 0: none")
    parser.add_argument("--other", type=lambda path: pathlib.Path(path).resolve(), help="programs of an earlier release")
    parser.add_argument("--job", type=int, default=20000, help="elements of each counted job, with --change-every")
    arguments = parser.parse_args()
    changing = {"jobs": 0, "leaders": 0, "workers": 0} if arguments.change_every else {}
    program.conclude(arguments, run, elements=0, **changing)
