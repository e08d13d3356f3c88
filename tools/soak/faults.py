# SPDX-License-Identifier: Apache-2.0
"""What a soak does to its processes, and how soon reading goes on behind it."""
import statistics
import time

from fleet import Failed

FAULTS = ["kill-worker", "kill-dispatcher", "kill-trainer", "stop-worker", "add-worker", "remove-worker"]
DRAINED_IN = 90  # seconds that a worker may take to hand over and end, on a busy machine


def micros():
    return time.time_ns() // 1000


class Strikes:
    """Strikes a fleet that reads jobs. One thread; nothing waits, what is to come later is done by Turn()."""

    def __init__(self, fleet, workers, stop_seconds):
        self.fleet, self.stop_seconds = fleet, stop_seconds
        self.workers = [fleet.start_worker() for _ in range(workers)]
        self.stopped, self.leaving = [], []
        self.later = []  # (when, what), of the monotonic clock
        self.done = []  # (fault, when it struck, when it was mended, in microseconds)
        self.counts = {fault: 0 for fault in FAULTS}

    def strike(self, fault, jobs, rng):
        """What was done, in words."""
        began = micros()
        words = {"kill-worker": self._kill_worker, "kill-dispatcher": self._kill_dispatcher,
                 "kill-trainer": self._kill_trainer, "stop-worker": self._stop_worker,
                 "add-worker": self._add_worker, "remove-worker": self._remove_worker}[fault](jobs, rng)
        if words is None:
            return f"{fault}: nobody to strike"
        self.counts[fault] += 1
        self.done.append([fault, began, began])
        return words

    def _running(self):
        return [worker for worker in self.workers if worker not in self.stopped]

    def _kill_worker(self, _, rng):
        if not self._running():
            return None
        victim = rng.choice(self._running())
        victim.kill()
        self.workers.remove(victim)
        self._after(rng.uniform(0, 1), lambda: self.workers.append(self.fleet.begin_worker()))
        return f"kill -9 {victim.name}"

    def _kill_dispatcher(self, _, rng):
        victim = self.fleet.dispatcher
        if victim.child.poll() is not None:
            return None
        victim.kill()
        self._after(rng.uniform(0, 1), self._start_dispatcher)
        return f"kill -9 {victim.name}"

    def _start_dispatcher(self):
        self.fleet.start_dispatcher()
        for done in reversed(self.done):
            if done[0] == "kill-dispatcher":
                done[2] = micros()
                return

    def _kill_trainer(self, jobs, rng):
        for job in rng.sample(jobs, len(jobs)):
            if names := job.kill_trainers(rng):
                return f"kill -9 {' and '.join(names)} of {job.name}"
        return None

    def _stop_worker(self, _, rng):
        if not self._running():
            return None
        victim = rng.choice(self._running())
        victim.pause()
        self.stopped.append(victim)
        self._after(self.stop_seconds, lambda: self._go_on(victim))
        return f"stop {victim.name} for {self.stop_seconds:g} s"

    def _go_on(self, worker):
        self.stopped.remove(worker)
        worker.go_on()

    def _add_worker(self, _, __):
        self.workers.append(self.fleet.begin_worker())
        return f"add {self.workers[-1].name}"

    def _remove_worker(self, _, rng):
        if len(self._running()) < 2:
            return None
        victim = rng.choice(self._running())
        self.remove(victim)
        return f"remove {victim.name}"

    def remove(self, worker):
        """Hands over what it has, and ends."""
        self.workers.remove(worker)
        self.leaving.append((worker, time.monotonic() + DRAINED_IN))
        worker.child.terminate()

    def _after(self, seconds, what):
        self.later.append((time.monotonic() + seconds, what))

    def turn(self):
        """Does what is due; whether nothing is to come. Failed where a process has not done its part."""
        now = time.monotonic()
        for entry in [entry for entry in self.later if entry[0] <= now]:
            self.later.remove(entry)
            entry[1]()
        for worker, until in list(self.leaving):
            code = worker.child.poll()
            if code is None and now > until:
                raise Failed(f"{worker.name} was told to end and has not in {DRAINED_IN} s")
            if code is not None:
                self.leaving.remove((worker, until))
            if code:
                raise Failed(f"{worker.name} was told to end and did with {code}:\n{worker.errors.read_text()[-2000:]}")
        for process in [self.fleet.dispatcher, *self.workers]:
            if process.child.poll() not in (None, -9):
                raise Failed(f"{process.name} ended by itself:\n{process.errors.read_text()[-2000:]}")
        return not self.later and not self.leaving


class GoesOn:
    """How soon reading went on, by fault: seconds to the first new element of each partition that moved, and from a
    dispatcher's start to the first commit of each trainer."""

    def __init__(self):
        self.moved = {fault: [] for fault in FAULTS}
        self.commits = []

    def look(self, jobs, done):
        """Of one lap: `done` are its faults, in order. What comes behind a later fault is not counted for an earlier one."""
        reads = {}  # by partition of each job, in order of time
        for job in jobs:
            for read in job.all_reads():
                reads.setdefault((job.name, read.partition), []).append(read)
        for of_partition in reads.values():
            of_partition.sort(key=lambda read: read.at)
        commits = [at for job in jobs for at in job.commits()]
        for (fault, began, mended), (_, until, _) in zip(done, [*done[1:], (None, 1 << 62, None)]):
            for of_partition in reads.values():
                placement = max((read.placement for read in of_partition if read.at < began), default=None)
                new = [read.at for read in of_partition if began <= read.at < until and placement is not None
                       and read.placement > placement]
                if new:
                    self.moved[fault].append((new[0] - began) / 1e6)
            if fault == "kill-dispatcher":
                for of_trainer in commits:
                    if answered := [at for at in of_trainer if mended <= at < until]:
                        self.commits.append((answered[0] - mended) / 1e6)

    def lines(self, counts):
        """A line a fault."""
        for fault, count in counts.items():
            if count == 0:
                continue
            line = f"  {fault}: {count} times"
            if moved := self.moved[fault]:
                line += (f"; {len(moved)} partitions moved, first new element after "
                         f"{statistics.median(moved):.2f} s (median), {max(moved):.2f} s (most)")
            if fault == "kill-dispatcher" and self.commits:
                line += (f"; {len(self.commits)} trainers' first commit {statistics.median(self.commits):.2f} s (median), "
                         f"{max(self.commits):.2f} s (most) behind its start")
            yield line
