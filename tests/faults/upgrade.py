#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Upgrades a service from the release before while jobs are read, goes back, upgrades again and finalises.

Processes are replaced one by one, in the order of docs/upgrading.md: the dispatcher on the same journal,
after SIGTERM or kill -9; workers by drain; trainers from their states. Others are killed with kill -9 at the
same time and in between. Trainers share jobs with and without states, read rounds together, and read in a
deterministic order. Every element must come once, rounds must be whole, and the order must be the one of
each release alone. The release before must refuse the journal after `penstock upgrade finalise`. Seeds take
the transports in turn. The last line reports the result.

tests/releases/build_before.sh builds the release before.
"""
import contextlib
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time
from typing import NamedTuple

import program
from fleet import Failed, Fleet, differences, history
from jobs import check_rounds

PROTOCOLS = ["shm", "tcp", "grpc"]
WORKERS = 2
SLICE = 100  # elements that each trainer reads while a process is replaced
MOST_WORKER_KILLS = 3  # a fourth one may end a job of which no bookmark was saved in between
LINE = 30  # bytes of an element in a log, about
PATIENCE = 120  # seconds
PATIENCE_AT_END = 1200  # seconds in which the rest is read, on a busy machine


class Kind(NamedTuple):
    """A kind of job."""
    name: str
    trainers: int
    flags: tuple  # of soak_trainer
    words: int = 1  # int64 values in an element
    commit_every: int = 5  # elements
    has_states: bool = True
    is_coordinated: bool = False


ORDERED = Kind("ordered", 1, ("--shuffle", 16, "--ordered"))
KINDS = [
    Kind("shared", 2, ("--shuffle", 16, "--keep-taken"), words=2000, has_states=False),
    Kind("committed", 2, ("--shuffle", 16)),
    Kind("rounds", 2, ("--shuffle", 16, "--consumers", 2), commit_every=1 << 40, is_coordinated=True),
    ORDERED,
]


class Seat:
    """A trainer's place in a job."""

    def __init__(self, fleet, kind, index, count):
        self.fleet, self.kind, self.index, self.count = fleet, kind, index, count
        self.logs, self.killed = [], False

    def open(self, release, answer):
        """Starts a trainer of this release. It continues from the state of the one before, if the job has states."""
        self.release, self.killed = release, False
        if not self.logs or not self.kind.has_states:
            self.logs.append(self.fleet.folder / f"{self.kind.name}-{self.index}-{len(self.logs)}.log")
        self.fleet.use(release)
        consumer = ("--consumer", self.index) if self.kind.is_coordinated else ()
        self.trainer = self.fleet.start_trainer(*self.kind.flags, *consumer, commit_every=self.kind.commit_every)
        state = self.fleet.folder / f"{self.kind.name}-{self.index}.state"
        self.trainer.expect(f"open {self.kind.name} {self.count} {self.kind.words} {self.logs[-1]} {state}", answer,
                            seconds=PATIENCE)

    def hear(self, answer, seconds=PATIENCE):
        if (heard := self.trainer.hear(seconds)) != answer:
            raise Failed(f"{self.trainer.name} of {self.kind.name}: {heard}")

    def leave(self):
        if self.kind.has_states:
            self.trainer.expect("commit", "committed", seconds=PATIENCE)
        self.trainer.expect("close", "closed", seconds=PATIENCE)
        self.trainer.kill()


class Upgrade:
    """A service whose processes are of the release before at first, with its jobs."""

    def __init__(self, args, fleet, seed):
        self.fleet, self.rng = fleet, random.Random(seed)
        self.before, self.today = args.before, args.bin
        self.slices = self.kills = self.worker_kills = 0
        self.release = self.before  # of the dispatcher
        self.workers = [self.start_worker(self.before) for _ in range(WORKERS)]
        processes = 1 + WORKERS + sum(kind.trainers for kind in KINDS)
        most_slices = 6 + 3 * 2 * processes  # each process moves three times, perhaps with a kill afterwards
        self.counts = {kind: kind.trainers * (SLICE + 1) * most_slices for kind in KINDS}
        self.seats = [Seat(fleet, kind, i, self.counts[kind]) for kind in KINDS for i in range(kind.trainers)]

    def note(self, words):
        with open(self.fleet.folder / "steps.txt", "a", encoding="utf-8") as steps:
            steps.write(f"{time.strftime('%H:%M:%S')} {words}\n")

    # --- reading ----------------------------------------------------------------------

    @contextlib.contextmanager
    def reading(self):
        """All trainers read a slice. The body runs while they do. Trainers that it kills go on from their states."""
        self.slices += 1
        moment = self.logged() + self.rng.randrange(SLICE * len(self.seats) * LINE)
        for seat in self.seats:
            seat.trainer.say(f"read {SLICE}")
        deadline = time.monotonic() + PATIENCE
        while self.logged() < moment and time.monotonic() < deadline:
            time.sleep(0.002)
        yield
        killed = [seat for seat in self.seats if seat.killed]
        for seat in killed:
            seat.open(seat.release, "resumed")
        self.read_one(killed)  # which connects them: others may wait for what they say of their elements
        for seat in self.seats:
            if seat not in killed:
                seat.hear("read")
        self.commit_rounds()

    def read_one(self, seats):
        for seat in seats:
            seat.trainer.say("next")
        for seat in seats:
            if not (answer := seat.trainer.hear(PATIENCE)).startswith("element"):
                raise Failed(f"{seat.trainer.name} of {seat.kind.name}: {answer}")
            seat.trainer.expect("drop", "dropped")

    def logged(self):
        """Returns the size of all logs in bytes."""
        return sum(log.stat().st_size for seat in self.seats for log in seat.logs)

    def consumers(self):
        return [seat for seat in self.seats if seat.kind.is_coordinated]

    def commit_rounds(self):
        """Consumers commit states of one step only between slices: after a kill all go back to these states."""
        for seat in self.consumers():
            seat.trainer.say("commit")
        for seat in self.consumers():
            seat.hear("committed")

    def await_consumer(self, seat):
        """Returns when a consumer that came back alone is where the others wait. They must read nothing before."""
        self.read_one([seat])
        self.read_one([other for other in self.consumers() if other is not seat])
        self.commit_rounds()

    # --- kills ------------------------------------------------------------------------

    def kill_any(self, *spared):
        """Kills a process, but none of these, with kill -9, and starts another one of its release."""
        workers = self.workers if self.worker_kills < MOST_WORKER_KILLS else []
        targets = [self.fleet.dispatcher, *workers, *(seat for seat in self.seats if seat.kind.has_states)]
        victim = self.rng.choice([target for target in targets if target not in spared])
        if isinstance(victim, Seat):
            self.kill_trainer(victim)
        elif victim is self.fleet.dispatcher:
            self.replace_dispatcher(self.release, signal.SIGKILL)
        else:
            self.kill(victim)
            self.worker_kills += 1
            self.workers[self.workers.index(victim)] = self.start_worker(victim.release)

    def kill(self, process):
        self.note(f"kill -9 {process.name}")
        process.kill()
        self.kills += 1

    def kill_trainer(self, victim):
        for seat in self.consumers() if victim.kind.is_coordinated else [victim]:
            self.kill(seat.trainer)
            seat.killed = True

    def perhaps_kill(self, *spared):
        if self.rng.random() < 0.3:
            self.kill_any(*spared)

    def kill_in_a_slice(self):
        with self.reading():
            self.kill_any()

    # --- replacing processes ----------------------------------------------------------

    def start_worker(self, release):
        self.fleet.use(release)
        worker = self.fleet.start_worker()
        worker.release = release
        return worker

    def replace_dispatcher(self, release, how):
        old = self.fleet.dispatcher
        if how == signal.SIGKILL:
            self.kill(old)
        else:
            old.child.terminate()
            if (code := old.child.wait(PATIENCE)) != 0:
                raise Failed(f"{old.name} exited with {code} after SIGTERM")
        self.release = release
        self.fleet.use(release)
        self.fleet.start_dispatcher()
        self.fleet.dispatcher.hear_match("ready at", PATIENCE)

    def move_dispatcher(self, release):
        with self.reading():
            self.replace_dispatcher(release, self.rng.choice([signal.SIGTERM, signal.SIGKILL]))
            self.perhaps_kill()

    def move_worker(self, index, release):
        with self.reading():
            leaving = self.workers[index]
            leaving.child.terminate()
            self.perhaps_kill(leaving)
            if (code := leaving.child.wait(PATIENCE)) != 0:
                raise Failed(f"{leaving.name} exited with {code} after SIGTERM")
            self.workers[index] = self.start_worker(release)

    def move_trainer(self, seat, release):
        """A trainer of this release takes the place of one that is killed, or that leaves between slices."""
        is_killed = seat.kind.has_states and self.rng.random() < 0.5
        with self.reading():
            if is_killed:
                self.kill_trainer(seat)
                seat.release = release
            self.perhaps_kill(*self.seats)
        if not is_killed:
            seat.leave()
            seat.open(release, "resumed" if seat.kind.has_states else "open")
            if seat.kind.is_coordinated:
                self.await_consumer(seat)

    def moves_to(self, release):
        """Returns (what moves, function) for each process, in the order of docs/upgrading.md."""
        dispatcher = [("dispatcher", lambda: self.move_dispatcher(release))]
        workers = [(f"worker {i}", lambda i=i: self.move_worker(i, release)) for i in range(WORKERS)]
        trainers = [(f"{seat.kind.name} {seat.index}", lambda seat=seat: self.move_trainer(seat, release))
                    for seat in self.rng.sample(self.seats, len(self.seats))]
        return dispatcher + workers + trainers if release == self.today else trainers + workers + dispatcher

    def move_to(self, release):
        for what, move in self.moves_to(release):
            self.note(f"{what} to {'today' if release == self.today else 'the release before'}")
            move()
            if self.rng.random() < 0.4:
                self.kill_in_a_slice()

    # --- the whole ----------------------------------------------------------------------

    def run(self, found, with_snapshots):
        take_snapshot = self.take_snapshot if with_snapshots else lambda: None
        alone, old = self.order_of("before"), self.formats("status")[0]
        for seat in self.seats:
            seat.open(self.before, "open")
        with self.reading():
            pass
        for seat in self.seats:
            if seat.kind.has_states:  # so that kills find a state
                seat.trainer.expect("commit", "committed", seconds=PATIENCE)
        take_snapshot()
        self.move_to(self.today)
        take_snapshot()  # the release before reads it
        self.move_to(self.before)
        self.move_to(self.today)
        self.finalise(old)
        take_snapshot()
        for seat in self.seats:
            seat.trainer.say("all")
        self.replace_dispatcher(self.today, signal.SIGKILL)
        for seat in self.seats:
            seat.hear("end", PATIENCE_AT_END)
        self.check(alone, found)
        if self.order_of("today") != alone:
            raise Failed("the two releases read in different orders")

    def finalise(self, old):
        """Finalises the upgrade of a journal in format `old`."""
        now, newest = self.formats("status")
        if now != old or newest <= old:
            raise Failed(f"format {now} of at most {newest} before the upgrade is finalised; it was {old}")
        self.await_peers()
        if self.formats("finalise") != (newest, newest):
            raise Failed("the upgrade was not finalised")
        self.kill_in_a_slice()

    def take_snapshot(self):
        """Makes records until the dispatcher takes a snapshot of its journal. Then another one reads it."""
        def newest():
            said = subprocess.run([self.today / "penstock", "journal", "verify", self.fleet.folder / "journal"],
                                  capture_output=True, text=True, check=True).stdout
            return int(re.search(r"snapshot at (\d+)", said)[1])

        last = newest()
        kind = Kind(f"commits-{last}", 4, (), commit_every=1)
        seats = [Seat(self.fleet, kind, i, 40000) for i in range(kind.trainers)]
        for seat in seats:
            seat.open(self.release, "open")
        while newest() == last:
            for seat in seats:
                seat.trainer.say("read 250")
            for seat in seats:
                seat.hear("read")
        for seat in seats:
            seat.leave()
        self.note(f"snapshot at {newest()}")
        self.replace_dispatcher(self.release, signal.SIGKILL)

    def ask_upgrade(self, order):
        self.fleet.use(self.today)
        return self.fleet.ask_dispatcher("upgrade", order)

    def formats(self, order):
        """Gives the order to `penstock upgrade`. Returns the journal's format, and the newest one of the dispatcher."""
        said = self.ask_upgrade(order)
        self.note(said)
        if not (found := re.search(r"journal format (\d+)(?:, newest (\d+))?", said)):
            raise Failed(f"`penstock upgrade {order}` names no format: {said}")
        return int(found[1]), int(found[2] or found[1])

    def await_peers(self):
        """Returns when `penstock upgrade status` says that all workers and clients are of one release."""
        with self.reading():  # connects the trainers
            pass
        wanted = [("clients", str(len(self.seats))), ("workers", str(WORKERS))]
        deadline = time.monotonic() + PATIENCE
        while True:
            said = self.ask_upgrade("status")
            if sorted(re.findall(r"^(workers|clients) +\S+ +\d+ +(\d+)$", said, re.MULTILINE)) == wanted:
                return
            if time.monotonic() > deadline:
                raise Failed(f"`penstock upgrade status` does not name {wanted}: {said}")
            time.sleep(0.05)

    # --- counting -----------------------------------------------------------------------

    def order_of(self, name):
        """Returns the numbers of a job that nothing disturbs, in their order, with the present processes."""
        seat = Seat(self.fleet, ORDERED._replace(name=f"alone-{name}", commit_every=1 << 40), 0, self.counts[ORDERED])
        seat.open(self.release, "open")
        seat.trainer.expect("all", "end", seconds=PATIENCE)
        seat.leave()
        return [read.number for read in history(*seat.logs)]

    def check(self, alone, found):
        for kind in KINDS:
            logs = [log for seat in self.seats if seat.kind == kind for log in seat.logs]
            lost, doubled = differences(logs, self.counts[kind])
            found.elements += self.counts[kind]
            found.lost, found.doubled = found.lost + lost, found.doubled + doubled
            if lost or doubled:
                raise Failed(f"{kind.name}: lost={lost} doubled={doubled}")
            if kind.is_coordinated:
                check_rounds(kind.name, logs, self.fleet.ask_dispatcher("jobs", "show", kind.name).count("\n") - 1)
            if kind == ORDERED and [read.number for read in history(*logs)] != alone:
                raise Failed("the order differs from the one without an upgrade")


def expect_refused(release, journal):
    """A dispatcher of this release must not start on the journal, and must say why."""
    done = subprocess.run([release / "penstock", "dispatcher", "--port", "0", "--work-dir", journal,
                           "--fault-tolerant-mode"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode == 0 or "start the newer release" not in done.stderr:
        raise Failed(f"the release before exited with {done.returncode} on a finalised journal: {done.stderr}")


def run(args, folder, found):
    for seed in range(args.seed, args.seed + args.seeds):
        its, began = folder / f"{seed}", time.monotonic()
        its.mkdir()
        protocol = args.protocol or PROTOCOLS[seed % len(PROTOCOLS)]
        journal = its / "journal"
        with Fleet(args.before, its, protocol, client_timeout_ms=60000,
                             worker_timeout_ms=20000,  # a busy machine is no test's affair
                             dispatcher_flags=["--work-dir", journal, "--fault-tolerant-mode"]) as fleet:
            upgrade = Upgrade(args, fleet, seed)
            try:
                upgrade.run(found, with_snapshots=found.seeds < args.snapshots)
            except Failed as failure:
                raise Failed(f"seed {seed}: {failure}")
        expect_refused(args.before, journal)
        found.seeds, found.kills = found.seeds + 1, found.kills + upgrade.kills
        print(f"  seed {seed}: {protocol}, {upgrade.slices} slices, {upgrade.kills} kills, "
              f"{sum(upgrade.counts.values())} elements, {time.monotonic() - began:.0f} s", flush=True)
        if not args.keep:
            shutil.rmtree(its)


if __name__ == "__main__":
    parser = program.parser(__doc__, seeds=True)
    parser.set_defaults(protocol="")
    parser.add_argument("--before", default="build/release/before/build/release/bin",
                        type=lambda path: pathlib.Path(path).resolve(), help="programs of the release before")
    parser.add_argument("--snapshots", default=0, type=int,
                        help="seeds in which both releases also take snapshots of the journal, which needs minutes")
    program.conclude(parser.parse_args(), run, seeds=0, kills=0, elements=0, lost=0, doubled=0)
