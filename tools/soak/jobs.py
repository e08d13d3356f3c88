# SPDX-License-Identifier: Apache-2.0
"""The jobs that a soak reads at once, one of each kind, and how their elements are counted."""
import collections
import subprocess
import threading
import time
from typing import NamedTuple

from fleet import Failed, Gone, Read, history

PATIENCE = 600  # seconds for one order; that nothing moves at all is noticed far earlier (soak.py)
ROUNDS_BETWEEN_STATES = 50


class Kind(NamedTuple):
    """What is read, and by whom."""
    name: str
    trainers: int
    flags: list  # of soak_trainer
    filtered: bool = False
    passes: int = 1
    share: float = 1.0  # of the numbers that other kinds read
    most_words: int = 1 << 20  # int64 values in an element

    def numbers(self, count):
        """Those that are to come, `passes` times each (tools/soak/numbers.h)."""
        return [number for number in range(count) if not self.filtered or number % 3]


KINDS = [
    Kind("shared", 2, ["--filter", "--shuffle", 16], filtered=True, share=2.0),
    Kind("off", 1, ["--mode", "off", "--filter", "--shuffle", 16], filtered=True, share=0.5),
    Kind("static", 1, ["--mode", "data", "--filter", "--shuffle", 16], filtered=True),
    Kind("rounds", 2, ["--shuffle", 16, "--consumers", 2], share=1.5),
    Kind("cached", 1, ["--cache", "memory", "--passes", 2, "--shuffle", 16], passes=2, share=0.5,
         most_words=300),  # workers hold all of it
]


class Seat:
    """A trainer's place: its process, and the one that takes it up after a kill. For a job's thread and the striker's."""

    def __init__(self, fleet, kind, i, step_us):
        rounds = kind.name == "rounds"
        flags = [*kind.flags, "--step-us", step_us, *(["--consumer", i] if rounds else [])]
        self.start = lambda: fleet.start_trainer(*flags, commit_every=1 << 40 if rounds else 100)
        self.process = self.start()
        self.killed = self.ended = False
        self.pause = 0.0  # seconds until it is started again

    def kill(self, pause):
        self.killed, self.pause = True, pause
        self.process.kill()

    def revive(self):
        time.sleep(self.pause)
        self.process = self.start()
        self.killed = False


class Job:
    """One job of a kind: read by threads of its own until all its trainers have seen the end."""

    def __init__(self, kind, seats, fleet, name, count, words):
        self.kind, self.seats, self.fleet, self.name = kind, seats, fleet, name
        self.count, self.words = count, words
        self.logs = [fleet.folder / f"{name}-{i}.log" for i in range(kind.trainers)]
        self.lock = threading.Lock()  # over killed and ended of the seats
        self.error = None
        self.has_states = False  # of rounds, all consumers
        self.partitions = set()  # as the dispatcher names them, at the end
        for seat in seats:
            seat.ended = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    # --- reading -----------------------------------------------------------------

    def _run(self):
        try:
            if self.kind.name == "rounds":
                self._read_rounds()
            else:
                threads = [threading.Thread(target=self._guarded, args=(self._read, i), daemon=True)
                           for i in range(len(self.seats))]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            if self.error is None:
                self._close()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def _guarded(self, what, *args):
        try:
            what(*args)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def _open(self, i, checkpoint):
        self.seats[i].process.expect(f"open {self.name} {self.count} {self.words} {self.logs[i]} {checkpoint}",
                                     "open", "resumed", seconds=PATIENCE)

    def _checkpoint(self, i, step=""):
        return self.fleet.folder / f"{self.name}-{i}.state{step}"

    def _read(self, i):
        """One trainer, which goes on from its own state after a kill."""
        seat = self.seats[i]
        while not seat.ended:
            try:
                self._open(i, self._checkpoint(i))
                seat.process.expect("all", "end", seconds=PATIENCE)
            except Gone:
                if not seat.killed:
                    raise
            self._end_or_revive([seat])

    def _end_or_revive(self, seats):
        with self.lock:
            for seat in seats:
                seat.ended = not seat.killed
        for seat in seats:
            if seat.killed:
                seat.revive()

    def _read_rounds(self):
        """All consumers together, which go back together to states of one step."""
        step, everyone = 0, range(len(self.seats))
        while not all(seat.ended for seat in self.seats):
            try:
                for i in everyone:
                    self._open(i, self._checkpoint(i, step))
                ended = False
                while not ended:
                    answers = self._all_say(f"read {ROUNDS_BETWEEN_STATES if step else 1}", "read", "end")
                    if len(set(answers)) > 1:
                        raise Failed(f"{self.name}: consumers end at different rounds")
                    ended = answers[0] == "end"
                    for i in everyone:
                        self.seats[i].process.say(f"save {self._checkpoint(i, step + 1)}")
                    for seat in self.seats:
                        self._hears(seat, "saved")
                    self.has_states = True
                    step += 1  # all have written it
                    self._all_say("keep", "kept")
            except Gone:
                if not any(seat.killed for seat in self.seats):
                    raise
            self._end_or_revive(self.seats)

    def _all_say(self, order, *answers):
        for seat in self.seats:
            seat.process.say(order)
        return [self._hears(seat, *answers) for seat in self.seats]

    def _hears(self, seat, *answers):
        if (answer := seat.process.hear(PATIENCE)) not in answers:
            raise Failed(f"{seat.process.name}: {answer}")
        return answer

    def _close(self):
        show = subprocess.run([self.fleet.penstock, "jobs", "show", self.name, "--dispatcher-address",
                               self.fleet.service, "--timeout-ms", "60000"], capture_output=True, text=True, check=False)
        if show.returncode != 0:
            raise Failed(show.stderr.strip())
        self.partitions = {int(line.split()[1]) for line in show.stdout.splitlines()[1:]}
        for seat in self.seats:
            seat.process.expect("close", "closed", seconds=PATIENCE)

    # --- for who kills trainers ---------------------------------------------------

    def kill_trainers(self, rng):
        """Kills one trainer, or all of those that step together; their names, or None if all have ended.

        Who has written no state yet is spared: what it claims is only given to others when its time is out.
        """
        with self.lock:
            reading = [seat for i, seat in enumerate(self.seats) if not seat.ended and not seat.killed
                       and (self.has_states if self.kind.name == "rounds" else self._checkpoint(i).exists())]
            if self.kind.name != "rounds" and reading:
                reading = [rng.choice(reading)]
            pause = rng.uniform(0, 1)
            for seat in reading:
                seat.kill(pause)
            return [seat.process.name for seat in reading] or None

    # --- counting ------------------------------------------------------------------

    def verdict(self):
        """(elements, lost, doubled); Failed if rounds are torn."""
        reads = [read for log in self.logs for read in history(log)]
        wanted = self.kind.numbers(self.count)
        if self.kind.name == "off":  # everything from each partition
            groups = {partition: [] for partition in self.partitions}
            for read in reads:
                groups.setdefault(read.partition, []).append(read.number)
        else:
            groups = {0: [read.number for read in reads]}
        lost = doubled = 0
        for numbers in groups.values():
            times = collections.Counter(numbers)
            more = collections.Counter({number: self.kind.passes for number in wanted})
            lost += (more - times).total()
            doubled += (times - more).total()
        if self.kind.name == "rounds":
            self._check_rounds()
        return len(reads), lost, doubled

    def _check_rounds(self):
        """Each round is one turn of one partition; the rests at the end come from several."""
        rounds = collections.defaultdict(list)
        for log in self.logs:
            for read in history(log):
                rounds[read.round].append((read.partition, read.index // len(self.seats)))
        rests = (len(self.seats) - 1) * max(1, len(self.partitions)) + 1
        for number in sorted(rounds)[:-rests]:
            if len(rounds[number]) != len(self.seats) or len(set(rounds[number])) != 1:
                raise Failed(f"{self.name}: round {number} is torn: {rounds[number]}")

    def all_reads(self):
        """What its trainers were given, also what they forgot when they were killed."""
        return [Read(*map(int, line.split())) for log in self.logs for line in log.read_text().splitlines()
                if line[0].isdigit()]

    def commits(self):
        """When the dispatcher answered commits, in microseconds since 1970, by trainer."""
        return [[int(line.split()[2]) for line in log.read_text().splitlines() if line.startswith("committed ")]
                for log in self.logs]
