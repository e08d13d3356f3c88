# SPDX-License-Identifier: Apache-2.0
"""The faults that a soak run injects, and the times after which reading continues."""
import shutil
import signal
import statistics
import time

from fleet import Failed
from jobs import OF_ANOTHER_LIFE

FAULTS = ["kill-worker", "kill-dispatcher", "kill-trainer", "stop-worker", "add-worker", "remove-worker", "away-trainer",
          "leave", "empty-dispatcher", "older-journal", "cut-link", "end-worker"]
DRAINED_IN = 90  # seconds within which a worker must hand over and end, on a busy machine
DOOMED_IN = 120  # seconds within which a job must fail if one of its elements ends workers
DOOMED_COUNT = 200  # elements of such a job


def micros():
    return time.time_ns() // 1000


class Strikes:
    """Injects faults into a fleet that reads jobs. Used by one thread. No method waits: turn() completes the faults."""

    def __init__(self, fleet, workers, stop_seconds, away_seconds, plugin):
        self.fleet, self.stop_seconds, self.away_seconds, self.plugin = fleet, stop_seconds, away_seconds, plugin
        self.journal = fleet.folder / "journal"
        self.workers = [fleet.start_worker() for _ in range(workers)]
        self.stopped, self.leaving = [], []
        self.counts = {fault: 0 for fault in FAULTS}
        self.excused = set()  # ways in which workers may end by themselves; a refused one may end only in the next lap
        self.begin()

    def begin(self):
        """Begins a lap. REQUIRES: turn() has returned True since the last fault of the previous lap."""
        self.later = []  # (when, action), by the monotonic clock
        self.done = []  # (fault, time of injection, time of repair), in microseconds
        self.doomed = []  # (trainer, deadline) of each job whose element ends its workers
        self.copied = False  # whether an older journal will be restored
        self.excused.discard(-signal.SIGABRT)

    def strike(self, fault, jobs, rng):
        """Injects a fault, and returns its description."""
        began = micros()
        words = {"kill-worker": self._kill_worker, "kill-dispatcher": self._kill_dispatcher,
                 "kill-trainer": self._kill_trainer, "stop-worker": self._stop_worker,
                 "add-worker": self._add_worker, "remove-worker": self._remove_worker,
                 "away-trainer": self._send_trainer_away, "leave": self._leave,
                 "empty-dispatcher": self._empty_dispatcher, "older-journal": self._older_journal,
                 "cut-link": self._cut_link, "end-worker": self._end_worker}[fault](jobs, rng)
        if words is None:
            return f"{fault}: skipped, because it can hit no process now"
        self.counts[fault] += 1
        self.done.append([fault, began, began])
        return words

    # --- workers -------------------------------------------------------------------

    def _running(self):
        return [worker for worker in self.workers if worker not in self.stopped]

    def _kill_worker(self, _, rng):
        if not self._running():
            return None
        victim = rng.choice(self._running())
        victim.kill()
        self._replace(victim, rng.uniform(0, 1))
        return f"kill -9 {victim.name}"

    def _replace(self, worker, after):
        self.workers.remove(worker)
        self._after(after, lambda: self.workers.append(self.fleet.begin_worker()))

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
        ready = [worker for worker in self._running() if self._is_ready(worker)]
        if len(self._running()) < 2 or not ready:
            return None
        victim = rng.choice(ready)
        self.remove(victim)
        return f"remove {victim.name}"

    def remove(self, worker):
        """Asks a worker to hand over its elements and end. Kills it if it is not ready."""
        self.workers.remove(worker)
        if not self._is_ready(worker):  # it has no elements yet, and may not handle signals yet
            return worker.kill()
        self.leaving.append((worker, time.monotonic() + DRAINED_IN))
        worker.child.terminate()

    @staticmethod
    def _is_ready(worker):
        return worker.port or not worker.lines.empty()

    def _end_worker(self, _, rng):
        """Starts a job with an element that ends its workers. The job soon fails."""
        number = rng.randrange(DOOMED_COUNT)
        trainer = self.fleet.start_trainer("--keep-taken", "--ends-at", number, "--plugin", self.plugin)
        log = self.fleet.folder / f"{trainer.name}.log"
        trainer.say(f"open doomed-{trainer.name} {DOOMED_COUNT} 1 {log} {log}.state\nall")
        self.doomed.append((trainer, time.monotonic() + DOOMED_IN))
        self.excused.add(-signal.SIGABRT)
        return f"element {number} of doomed-{trainer.name} crashes its worker"

    # --- the dispatcher ---------------------------------------------------------------

    def _dispatcher_is_down(self):
        return self.fleet.dispatcher.child.poll() is not None

    def _kill_dispatcher(self, _, rng):
        if self._dispatcher_is_down():
            return None
        victim = self.fleet.dispatcher
        victim.kill()
        self._after(rng.uniform(0, 1), self._start_dispatcher)
        return f"kill -9 {victim.name}"

    def _start_dispatcher(self):
        self.fleet.start_dispatcher()
        for done in reversed(self.done):
            if done[0] == "kill-dispatcher":
                done[2] = micros()
                return

    def _empty_dispatcher(self, jobs, rng):
        if self._dispatcher_is_down() or self.copied:
            return None
        self._let_be_refused(jobs)
        victim = self.fleet.dispatcher
        victim.kill()
        shutil.rmtree(self.journal)
        self._after(rng.uniform(0, 1), self.fleet.start_dispatcher)
        return f"{victim.name} restarts without its journal"

    def _older_journal(self, jobs, rng):
        """Restarts the dispatcher and copies the journal in between. Replaces the journal by the copy some time later."""
        if self._dispatcher_is_down() or self.copied:
            return None
        self.copied = True
        self.fleet.dispatcher.kill()
        shutil.copytree(self.journal, self.journal.with_name("copy"))
        self.fleet.start_dispatcher()
        self._after(rng.uniform(1, 4), lambda: self._put_copy_back(jobs))
        return f"the journal will be replaced by a copy from the start of {self.fleet.dispatcher.name}"

    def _put_copy_back(self, jobs):
        if self._dispatcher_is_down():
            return self._after(0.2, lambda: self._put_copy_back(jobs))
        self._let_be_refused(jobs)
        self.excused.add("older copy of the journal")
        self.fleet.dispatcher.kill()
        shutil.rmtree(self.journal)
        self.journal.with_name("copy").rename(self.journal)
        self.fleet.start_dispatcher()
        self.copied = False

    @staticmethod
    def _let_be_refused(jobs):
        for job in jobs:
            job.may_be_refused = True

    # --- trainers, and links -------------------------------------------------------------

    def _kill_trainer(self, jobs, rng):
        return self._kill_trainer_for(jobs, rng, rng.uniform(0, 1))

    def _send_trainer_away(self, jobs, rng):
        words = self._kill_trainer_for(jobs, rng, self.away_seconds)
        return words and f"{words}, restarts after {self.away_seconds:g} s"

    @staticmethod
    def _kill_trainer_for(jobs, rng, seconds):
        for job in rng.sample(jobs, len(jobs)):
            if names := job.kill_trainers(rng, seconds):
                return f"kill -9 {' and '.join(names)} of {job.name}"
        return None

    def _leave(self, jobs, rng):
        if self.copied:  # the older journal would not know which elements the reader has taken
            return None
        for job in rng.sample(jobs, len(jobs)):
            if name := job.leave(rng):
                return f"{name} leaves {job.name}, and another reader joins it"
        return None

    def _cut_link(self, jobs, rng):
        trainers = [seat.process for job in jobs if job.thread.is_alive() for seat in job.seats
                    if not seat.ended and not seat.killed]
        if not trainers or not self._running():
            return None
        trainer, worker, seconds = rng.choice(trainers), rng.choice(self._running()), rng.uniform(5, 40)
        pair = (trainer.name, worker.name)
        self.fleet.network.cut(*pair)
        self._after(seconds, lambda: self.fleet.network.mend(*pair))
        return f"cut the link between {trainer.name} and {worker.name} for {seconds:.0f} s"

    # --- completing faults ------------------------------------------------------------

    def _after(self, seconds, what):
        self.later.append((time.monotonic() + seconds, what))

    def turn(self):
        """Completes the faults that are due. Returns whether no work is left. Failed if a process did not do its part."""
        now = time.monotonic()
        for entry in [entry for entry in self.later if entry[0] <= now]:
            self.later.remove(entry)
            entry[1]()
        for worker, until in list(self.leaving):
            code = worker.child.poll()
            if code is None and now > until:
                raise Failed(f"{worker.name} was told to drain, but still runs after {DRAINED_IN} s")
            if code is not None:
                self.leaving.remove((worker, until))
            if code and not self._is_excused(worker, code):
                raise Failed(f"{worker.name} was told to drain, but exited with {code}:\n"
                             f"{worker.errors.read_text()[-2000:]}")
        for process in [self.fleet.dispatcher, *self.workers]:
            code = process.child.poll()
            if code in (None, -signal.SIGKILL):
                continue
            if process is self.fleet.dispatcher or not self._is_excused(process, code):
                raise Failed(f"{process.name} ended unexpectedly:\n{process.errors.read_text()[-2000:]}")
            self._replace(process, 0.5)
        for entry in list(self.doomed):
            self._look_at_doomed(*entry)
        return not self.later and not self.leaving and not self.doomed

    def _is_excused(self, worker, code):
        return code in self.excused or any(words in worker.errors.read_text() for words in self.excused
                                           if isinstance(words, str))

    def _look_at_doomed(self, trainer, until):
        if trainer.lines.qsize() < 2:
            if time.monotonic() > until:
                raise Failed(f"{trainer.name}, whose job has an element that crashes its workers, "
                             f"got no error in {DOOMED_IN} s")
            return
        answers = trainer.hear(0), trainer.hear(0)
        if not any(words in answers[1] for words in ("workers died while they ran it", *OF_ANOTHER_LIFE)):
            raise Failed(f"{trainer.name}, whose job has an element that crashes its workers, "
                         f"got unexpected answers: {answers}")
        trainer.kill()
        self.doomed.remove((trainer, until))


class GoesOn:
    """The times after which reading continued, by fault: seconds to the first new element of each partition that moved,
    and from a dispatcher's start to the first commit of each trainer."""

    def __init__(self):
        self.moved = {fault: [] for fault in FAULTS}
        self.commits = []

    def look(self, jobs, done):
        """Adds one lap: `done` are its faults, in order. Events after a later fault do not count for an earlier one."""
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
        """Yields a line for each fault."""
        for fault, count in counts.items():
            if count == 0:
                continue
            line = f"  {fault}: {count} times"
            if moved := self.moved[fault]:
                line += (f"; {len(moved)} partitions moved, first new element after "
                         f"{statistics.median(moved):.2f} s (median), {max(moved):.2f} s (max)")
            if fault == "kill-dispatcher" and self.commits:
                line += (f"; {len(self.commits)} trainers' first commit {statistics.median(self.commits):.2f} s (median), "
                         f"{max(self.commits):.2f} s (max) after its start")
            yield line
