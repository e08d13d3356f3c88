#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads jobs of every kind at once while processes die, and counts every record.

A dispatcher, workers and trainers run in laps. In each lap six jobs start together
(two that two trainers share, OFF, static, rounds of two consumers, and cached; with
filters and shuffles), faults are injected at times drawn from the seed, and all jobs
are read to the end. Then each record must be in the trainers' histories exactly as
often as expected, and all resources of the jobs must be released. The last line is the
result.

If the dispatcher starts without its journal, or from an older copy, readers get an
error, and their jobs start again under other names. The records that were read before
are then only checked for duplicates.

A lap depends only on its own seed. A failure names the seed that repeats its lap.
"""
import argparse
import contextlib
import math
import pathlib
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time

from faults import FAULTS, GoesOn, Strikes
from fleet import Failed, Fleet, shared_memory
from jobs import KINDS, Job, Seat
from network import Network, NotPermitted

# (numbers, int64 values in each): elements alone in a frame, several in a frame, and in their own slots.
SIZES = [(3000, 1), (3000, 300), (2500, 2000), (1000, 20000)]
STUCK = 90  # seconds without any element after which the run fails
CLIENT_TIMEOUT, JOB_GC_TIMEOUT = 12, 4  # seconds
AWAY = CLIENT_TIMEOUT + JOB_GC_TIMEOUT + 2
ASLEEP = 5  # seconds between two checks that show that this program was itself stopped, like the others
WARM_UP = 3  # laps not counted, at the start of a process and after its first largest elements: a heap keeps freed memory
# MiB by which the memory of a long-lived process may grow from the first half of its laps to the second: over all laps,
# whose largest elements may come late, and over the laps after the largest elements.
SPARE, SPARE_WARM = 24, 8
LONG_LIFE = 8  # laps


class Lines:
    """Counts the lines of growing files."""

    def __init__(self):
        self.at, self.count = {}, 0

    def look(self, files):
        for file in files:
            if file.exists():
                with open(file, "rb") as log:
                    log.seek(self.at.get(file, 0))
                    new = log.read()
                self.at[file] = self.at.get(file, 0) + len(new)
                self.count += new.count(b"\n")
        return self.count


class Soak:
    def __init__(self, args, fleet):
        self.args, self.fleet = args, fleet
        self.strikes = Strikes(fleet, args.workers, args.stop_seconds, AWAY, args.plugin)
        self.seats = {kind.name: [Seat(fleet, kind, i, args.step_us) for i in range(kind.trainers)] for kind in KINDS}
        self.names_in_shm = shared_memory()
        self.goes_on = GoesOn()
        self.memory = {}  # MiB of own memory after each lap, by process name
        self.laps = self.elements = self.lost = self.doubled = self.begun_anew = 0

    def run(self):
        began = time.monotonic()
        while not self.enough(time.monotonic() - began):
            self.lap(self.args.seed + self.laps)
            self.laps += 1
        if growth := [line for line in map(self.growth, self.memory) if line]:
            raise Failed("; ".join(growth))

    def enough(self, seconds):
        if self.args.laps:
            return self.laps >= self.args.laps
        return seconds >= self.args.duration and self.elements >= self.args.elements

    # --- one lap -------------------------------------------------------------------

    def lap(self, seed):
        rng = random.Random(seed)
        count, words = rng.choice(SIZES)
        self.even_out()
        jobs = [Job(kind, self.seats[kind.name], self.fleet, f"{kind.name}-{seed}", math.ceil(count * kind.share),
                    min(words, kind.most_words))
                for kind in KINDS]
        least = sum(len(job.kind.numbers(job.count)) * job.kind.passes for job in jobs)
        plan = sorted((round(rng.uniform(0.05, 0.85) * least), rng.choice(self.args.faults))
                      for _ in range(self.args.faults_per_lap or rng.randint(1, 3)) if self.args.faults)
        self.strikes.begin()
        self.play(seed, jobs, plan, rng)
        self.goes_on.look(jobs, self.strikes.done)
        verdicts = [job.verdict() for job in jobs]
        elements, lost, doubled = map(sum, zip(*verdicts))
        self.elements, self.lost, self.doubled = self.elements + elements, self.lost + lost, self.doubled + doubled
        self.begun_anew += sum(job.begun - 1 for job in jobs)
        print(f"  lap {self.laps}: {elements} elements of {words} words, lost={lost} doubled={doubled}", flush=True)
        if lost or doubled:
            raise Failed("; ".join(f"{job.name}: lost={verdict[1]} doubled={verdict[2]}"
                                   for job, verdict in zip(jobs, verdicts) if any(verdict[1:])))
        self.await_quiet(words)
        for path in [path for job in jobs for path in self.fleet.folder.glob(f"{job.first_name}-*")]:
            path.unlink()

    def play(self, seed, jobs, plan, rng):
        """Injects the planned faults. Returns when all jobs are read and all faults are repaired."""
        lines = Lines()
        read, moved_at = 0, time.monotonic()
        turned_at = moved_at
        while True:
            if (stood_still := time.monotonic() - turned_at) > ASLEEP:
                moved_at += stood_still
            turned_at = time.monotonic()
            mended = self.strikes.turn()
            for job in jobs:
                if job.error:
                    raise job.error
            if (now := lines.look(log for job in jobs for log in job.logs)) > read:
                read, moved_at = now, time.monotonic()
            while plan and read >= plan[0][0]:
                words = self.strikes.strike(plan.pop(0)[1], jobs, rng)
                print(f"  lap {self.laps} (seed {seed}): {words}, {read} read", flush=True)
            reading = [job.name for job in jobs if job.thread.is_alive()]
            if not reading and mended and not plan:
                return
            if reading and time.monotonic() - moved_at > STUCK + max(self.args.stop_seconds, AWAY):
                raise Failed(f"nothing was read for {STUCK} s; unfinished: {', '.join(reading)}")
            time.sleep(0.02)

    def even_out(self):
        """Restores the number of workers at the beginning of the lap."""
        while len(self.strikes.workers) > self.args.workers:
            self.strikes.remove(self.strikes.workers[-1])
        while len(self.strikes.workers) < self.args.workers:
            self.strikes.workers.append(self.fleet.begin_worker())
        while not self.strikes.turn():
            time.sleep(0.02)

    # --- what is left ----------------------------------------------------------------

    def processes(self):
        """Returns the processes that have not ended."""
        return [process for process in [self.fleet.dispatcher, *self.strikes.workers,
                                        *(seat.process for seats in self.seats.values() for seat in seats)]
                if process.child.poll() is None]

    def await_quiet(self, words):
        """Waits until no process maps a segment and no segment has a name. Then records each process's memory, with
        `words`."""
        deadline = time.monotonic() + 30
        while left := ([] if self.strikes.turn() else ["a fault is not repaired yet"]) + (
                [f"{name} is still in /dev/shm" for name in shared_memory() - self.names_in_shm] +
                [f"{process.name} still maps segments" for process in self.processes() if process.holds()["segments"]]):
            if time.monotonic() > deadline:
                raise Failed("; ".join(left))
            time.sleep(0.05)
        for process in self.processes():
            if held := process.memory():  # a refused worker may be ending; turn() checks how
                self.memory.setdefault(process.name, []).append((words, held["MiB of its own"]))

    def warm(self, name):
        """Returns its memory after each lap, beginning WARM_UP laps after its first lap of the largest elements."""
        largest = max(words for _, words in SIZES)
        first = next((i for i, (words, _) in enumerate(self.memory[name]) if words == largest), len(self.memory[name]))
        return [held for _, held in self.memory[name][first + WARM_UP:]]

    def growth(self, name):
        """Returns a description of how the memory of a long-lived process grew; empty if it did not."""
        whole = [held for _, held in self.memory[name][WARM_UP:]]
        for samples, spare in (whole, SPARE), (self.warm(name), SPARE_WARM):
            if len(samples) < LONG_LIFE:
                continue
            first, second = samples[:len(samples) // 2], samples[len(samples) // 2:]
            if (more := statistics.median(second) - max(first)) > spare:
                return f"{name} used {more:.1f} MiB more in the second half of its laps than in the first"
        return ""

    def memory_line(self):
        """Returns the first and last memory of the longest-lived process, by role."""
        longest = {}
        for name in self.memory:
            role, held = name.split("-")[0], self.warm(name)
            if len(held) > len(longest.get(role, (None, []))[1]):
                longest[role] = (name, held)
        return "  memory after each lap, of the longest-lived process of each role: " + (", ".join(
            f"{name} {held[0]:.1f} → {held[-1]:.1f} MiB in {len(held)} laps"
            for name, held in longest.values()) or "too few laps")


def faults_of(text):
    names = [] if text == "none" else FAULTS if text == "all" else text.split(",")
    for name in names:
        if name not in FAULTS:
            raise argparse.ArgumentTypeError(f"unknown fault '{name}'; known faults: {', '.join(FAULTS)}")
    return names


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="penstock soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  penstock soak --duration 600\n  penstock soak --faults kill-worker --faults-per-lap 1 --laps 20")
    add = parser.add_argument
    add("--bin", default="build/release/bin", type=pathlib.Path, help=argparse.SUPPRESS)
    add("--seed", metavar="S", type=int, default=1,
        help="random seed; lap n uses S + n (default: %(default)s)")
    add("--faults", metavar="NAME,…", type=faults_of, default=FAULTS,
        help=f"comma-separated faults: {', '.join(FAULTS)}; or 'none' or 'all' (default: all)")
    add("--faults-per-lap", metavar="N", type=int, default=0, help="faults in each lap (default: 1 to 3)")
    add("--protocol", metavar="NAME", default="shm", help="data_transfer_protocol (default: %(default)s)")
    add("--duration", metavar="S", type=float, default=60,
        help="minimum seconds; the current lap is read to its end (default: %(default)g)")
    add("--elements", metavar="N", type=int, default=0, help="minimum elements, besides --duration")
    add("--laps", metavar="N", type=int, default=0, help="exact number of laps instead")
    add("--workers", metavar="N", type=int, default=2, help="workers at the beginning of each lap (default: %(default)s)")
    add("--stop-seconds", metavar="S", type=float, default=10,
        help="length of stop-worker, in seconds (default: %(default)g)")
    add("--step-us", metavar="US", type=int, default=1000,
        help="microseconds of a trainer's step; less makes a busier machine (default: %(default)s)")
    add("--keep", action="store_true", help="do not remove the logs")
    args = parser.parse_args()
    if args.workers < 1:
        parser.error("--workers must be at least 1")
    args.bin = args.bin.resolve()
    args.plugin = args.bin.parent / "lib" / "penstock" / "libpenstock_soak_plugin.so"
    return args


def network_for(args):
    """Returns the network in which links can be cut, if that fault is wanted. Removes the fault if it cannot be."""
    if "cut-link" not in args.faults:
        return None
    why = "with protocol shm, elements do not use the network" if args.protocol == "shm" else ""
    try:
        with Network() as trial:
            trial.add("host")
    except NotPermitted as not_permitted:
        why = why or str(not_permitted)
    if not why:
        return Network()
    args.faults = [fault for fault in args.faults if fault != "cut-link"]
    print(f"soak: cut-link is left out: {why}", flush=True)
    return None


def main():
    args = parse_arguments()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-soak-"))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    network = network_for(args)
    faults = ",".join(args.faults) or "none"
    print(f"soak: seed={args.seed} faults={faults} protocol={args.protocol} logs in {folder}", flush=True)
    journal = ["--work-dir", folder / "journal", "--fault-tolerant-mode", "--job-gc-timeout-ms", JOB_GC_TIMEOUT * 1000,
               "--gc-dynamic-sharding-jobs"]
    why, soak = "", None
    try:
        with network or contextlib.nullcontext(), \
                Fleet(args.bin, folder, args.protocol, client_timeout_ms=CLIENT_TIMEOUT * 1000, dispatcher_flags=journal,
                      worker_flags=["--plugins", args.plugin] if "end-worker" in args.faults else [],
                      network=network) as fleet:
            soak = Soak(args, fleet)
            soak.run()
    except Failed as failure:
        why = str(failure)
    except KeyboardInterrupt:
        print("soak: interrupted", file=sys.stderr)
        sys.exit(130)
    laps, elements, lost, doubled, begun_anew = (
        (soak.laps, soak.elements, soak.lost, soak.doubled, soak.begun_anew) if soak else (0, 0, 0, 0, 0))
    if soak and soak.laps:
        print("\n".join([*soak.goes_on.lines(soak.strikes.counts), soak.memory_line()]))
    if why:
        again = (f"--seed {args.seed + laps} --laps 1 --faults {faults} --protocol {args.protocol} --workers {args.workers} "
                 f"--faults-per-lap {args.faults_per_lap} --stop-seconds {args.stop_seconds:g} --step-us {args.step_us}")
        print(f"{why}\nrepeat with: penstock soak {again}\nlogs: {folder}", file=sys.stderr, flush=True)
    elif not args.keep:
        shutil.rmtree(folder)
    print(f"soak: {'failed' if why else 'ok'} seed={args.seed + laps if why else args.seed} lost={lost} doubled={doubled} "
          f"elements={elements} laps={laps} jobs_restarted={begun_anew} protocol={args.protocol}")
    sys.exit(1 if why else 0)


if __name__ == "__main__":
    main()
