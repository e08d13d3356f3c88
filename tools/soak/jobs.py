# SPDX-License-Identifier: Apache-2.0
"""The jobs that a soak run reads at the same time, one of each kind. Counts their elements."""
import collections
import pathlib
import threading
import time
from typing import NamedTuple

from fleet import Failed, Gone, Read, history, kept

PATIENCE = 600  # seconds for one order; a standstill of all jobs is noticed far earlier (soak.py)
ROUNDS_BETWEEN_STATES = 50
READ_BETWEEN_LEAVES = 20  # elements
# Errors for readers whose job the dispatcher no longer knows as it was: it has another job, or an older journal.
OF_ANOTHER_LIFE = ("not the one that this reader began with", "older copy of the journal", "is not known to this dispatcher",
                   "the dispatcher has lost its journal")


# Errors for a reader that was declared dead before it committed the state that it had written.
NEVER_COMMITTED = ("contains elements that were never committed", "is not the last one that it committed")
OTHERS_ARE_DEAD = "cannot be given out"  # part of the error for other consumers of rounds


class Refused(Failed):
    """The dispatcher's record of the job differs from the reader's."""


class NeverCommitted(Failed):
    """A reader that was declared dead restores a state that it had not committed. Others have read those elements."""


class Kind(NamedTuple):
    """A kind of job: its dataset, and its number of trainers."""
    name: str
    trainers: int
    flags: list  # of soak_trainer
    filtered: bool = False
    passes: int = 1
    share: float = 1.0  # count of numbers, relative to other kinds
    most_words: int = 1 << 20  # maximum number of int64 values in an element
    leaves: bool = False  # its trainers keep the elements that they take, and may leave

    def numbers(self, count):
        """Returns the numbers that should come, `passes` times each (tools/soak/numbers.h)."""
        return [number for number in range(count) if not self.filtered or number % 3]


KINDS = [
    Kind("shared", 2, ["--filter", "--shuffle", 16], filtered=True, share=2.0),
    Kind("off", 1, ["--mode", "off", "--filter", "--shuffle", 16], filtered=True, share=0.5),
    Kind("static", 1, ["--mode", "data", "--filter", "--shuffle", 16], filtered=True),
    Kind("rounds", 2, ["--shuffle", 16, "--consumers", 2], share=1.5),
    Kind("cached", 1, ["--cache", "memory", "--passes", 2, "--shuffle", 16], passes=2, share=0.5,
         most_words=300),  # workers hold all of it
    Kind("taken", 2, ["--keep-taken", "--shuffle", 16, "--shuffle-behind", 32, "--prefetch", 8], leaves=True),
]


class Seat:
    """A trainer's place: its process, and the successor after a kill. Used by a job's thread and the thread of Strikes."""

    def __init__(self, fleet, kind, i, step_us):
        rounds = kind.name == "rounds"
        flags = [*kind.flags, "--step-us", step_us, *(["--consumer", i] if rounds else [])]
        self.start = lambda: fleet.start_trainer(*flags, commit_every=1 << 40 if rounds else 100)
        self.process = self.start()
        self.killed = self.ended = self.leaving = False
        self.pause = 0.0  # seconds until the restart

    def kill(self, pause):
        self.killed, self.pause = True, pause
        self.process.kill()

    def revive(self):
        time.sleep(self.pause)
        self.process = self.start()
        self.killed = False


def check_rounds(name, logs, partitions):
    """Checks that each round in the consumers' logs is one row of one partition; Failed if it is not.

    Remainders at the end may come from several partitions. `partitions` is their number.
    """
    rounds = collections.defaultdict(list)
    for log in logs:
        for read in history(log):
            rounds[read.round].append((read.partition, read.index // len(logs)))
    rests = (len(logs) - 1) * max(1, partitions) + 1
    for number in sorted(rounds)[:-rests]:
        if len(rounds[number]) != len(logs) or len(set(rounds[number])) != 1:
            raise Failed(f"{name}: round {number} is torn: {rounds[number]}")


class Job:
    """One job of a kind. Its own threads read it until all its trainers have seen the end.

    If the dispatcher was replaced by one with an older record of the job, or none, another job begins in its place.
    """

    def __init__(self, kind, seats, fleet, name, count, words):
        self.kind, self.seats, self.fleet = kind, seats, fleet
        self.first_name, self.count, self.words = name, count, words
        self.lock = threading.Lock()  # guards the seats' killed, ended and leaving
        self.error = None
        self.may_be_refused = False  # whether the dispatcher was replaced meanwhile
        self.begun = self.doubled_before = 0  # jobs begun; doubled elements of refused jobs
        self._begin()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _begin(self):
        self.name = f"{self.first_name}-{self.begun}" if self.begun else self.first_name
        self.begun += 1
        self.logs = [self.fleet.folder / f"{self.name}-{i}.log" for i in range(len(self.seats))]
        self.has_states = False  # whether all consumers of rounds have a state
        self.partitions = set()  # the dispatcher's partitions, at the end
        with self.lock:
            for seat in self.seats:
                seat.ended = seat.leaving = False

    # --- reading -----------------------------------------------------------------

    def _run(self):
        try:
            while not self._is_read():
                self._begin()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def _is_read(self):
        """Reads the job. Returns True if it was read to its end and closed, False if it was refused."""
        refused, failed = [], []

        def guarded(read, *args):
            try:
                read(*args)
            except Refused as error:
                refused.append(error)
            except Exception as error:  # pylint: disable=broad-except
                failed.append(error)
                self.error = error  # stops waiting for the others

        if self.kind.name == "rounds":
            guarded(self._read_rounds)
        else:
            threads = [threading.Thread(target=guarded, args=(self._read, i), daemon=True) for i in range(len(self.seats))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        if failed:
            raise failed[0]
        if not refused:
            guarded(self._close)
        if failed or (refused and not self.may_be_refused):
            raise (failed + refused)[0]
        if refused:
            self._forget()
        return not refused

    def _forget(self):
        """Counts doubled elements up to the refusal, except elements that a killed trainer had not committed."""
        with self.lock:
            killed = [seat.killed for seat in self.seats]
            reads = [kept(log) if i < len(killed) and killed[i] else history(log) for i, log in enumerate(self.logs)]
        self.doubled_before += self._differences([read for its in reads for read in its])[1]
        for i, seat in enumerate(self.seats):
            if killed[i]:
                seat.revive()

    def _ask(self, i, order, *answers):
        """Returns the trainer's answer, one of `answers`."""
        self.seats[i].process.say(order)
        return self._hears(self.seats[i], *answers)

    def _hears(self, seat, *answers):
        answer = seat.process.hear(PATIENCE)
        if OTHERS_ARE_DEAD in answers and OTHERS_ARE_DEAD in answer:
            return OTHERS_ARE_DEAD
        if answer in answers:
            return answer
        if any(words in answer for words in OF_ANOTHER_LIFE):
            what = Refused
        else:
            what = NeverCommitted if any(words in answer for words in NEVER_COMMITTED) else Failed
        raise what(f"{seat.process.name} of {self.name}: {answer}")

    def _open(self, i, checkpoint):
        return self._ask(i, f"open {self.name} {self.count} {self.words} {self.logs[i]} {checkpoint}", "open", "resumed")

    def _checkpoint(self, i, step=""):
        return self.fleet.folder / f"{self.name}-{i}.state{step}"

    def _read(self, i):
        """Reads with one trainer, which continues from its own state after a kill."""
        seat = self.seats[i]
        while not seat.ended:
            try:
                self._open(i, self._checkpoint(i))
                if self.kind.leaves:
                    self._read_and_leave(i)
                else:
                    self._ask(i, "all", "end")
            except Gone:
                if not seat.killed:
                    raise
            except NeverCommitted:
                self._go_back(i)
                continue
            self._end_or_revive([seat])

    def _go_back(self, i):
        """Goes back to the state before the latest one, or to no state."""
        checkpoint = self._checkpoint(i)
        checkpoint.unlink()  # the refused state is not used again
        before = pathlib.Path(f"{checkpoint}.before")
        if before.exists():
            before.rename(checkpoint)

    def _read_and_leave(self, i):
        """Reads until a trainer gets the order to leave. Then another reader takes its place, with its own log.

        The new reader cannot notice that the dispatcher was replaced, and would then get all elements again.
        """
        while self._ask(i, f"read {READ_BETWEEN_LEAVES}", "read", "end") == "read":
            if not self.seats[i].leaving:
                continue
            self._ask(i, "close", "closed")
            with self.lock:
                self.logs.append(self.logs[i])
                self.logs[i] = self.fleet.folder / f"{self.name}-{i}-{len(self.logs)}.log"
                self.seats[i].leaving = False
            self._open(i, self._checkpoint(i))
            if self.may_be_refused:
                raise Refused(f"{self.seats[i].process.name} joined {self.name} during a replacement of the dispatcher")

    def _end_or_revive(self, seats):
        with self.lock:
            for seat in seats:
                seat.ended = not seat.killed
        for seat in seats:
            if seat.killed:
                seat.revive()

    def _read_rounds(self):
        """Reads with all consumers together. After a kill, all of them go back to their states of one step."""
        step, everyone = 0, range(len(self.seats))
        while not all(seat.ended for seat in self.seats):
            try:
                for i in everyone:
                    self._open(i, self._checkpoint(i, step))
                ended = False
                while not ended:
                    answers = self._all_say(f"read {ROUNDS_BETWEEN_STATES if step else 1}", "read", "end")
                    if len(set(answers)) > 1:
                        raise Failed(f"{self.name}: the consumers ended at different rounds")
                    ended = answers[0] == "end"
                    for i in everyone:
                        self.seats[i].process.say(f"save {self._checkpoint(i, step + 1)}")
                    self._all_hear("saved")
                    self.has_states = True
                    step += 1  # all consumers have written the state of this step
                    self._all_say("keep", "kept")
            except Gone:
                if not any(seat.killed for seat in self.seats):
                    raise
            self._end_or_revive(self.seats)

    def _all_say(self, order, *answers):
        for seat in self.seats:
            seat.process.say(order)
        return self._all_hear(*answers, again=order)

    def _all_hear(self, *answers, again=""):
        """Returns the answers of all trainers. Waits for all of them even if one is refused.

        If all were declared dead, the first one that reconnects gets an error, because the others are dead. It is then
        given the order again.
        """
        heard, refused, until = {}, None, time.monotonic() + PATIENCE
        while pending := [i for i in range(len(self.seats)) if i not in heard]:
            # Do not wait for one trainer alone: another one may need an order first.
            ready = [i for i in pending if not self.seats[i].process.lines.empty() or time.monotonic() > until]
            for i in ready:
                try:
                    answer = self._hears(self.seats[i], *answers, *([OTHERS_ARE_DEAD] if again else []))
                    if answer == OTHERS_ARE_DEAD:
                        self.seats[i].process.say(again)
                    else:
                        heard[i] = answer
                except Refused as error:
                    heard[i] = refused = error
            if not ready:
                time.sleep(0.005)
        if refused is not None:
            raise refused
        return [heard[i] for i in range(len(self.seats))]

    def _close(self):
        self.partitions = self._partitions()
        for i in range(len(self.seats)):
            self._ask(i, "close", "closed")

    def _partitions(self):
        try:
            table = self.fleet.ask_dispatcher("jobs", "show", self.name, "--timeout-ms", 60000)
        except Failed as failure:
            raise Refused(str(failure)) if self.may_be_refused else failure
        return {int(line.split()[1]) for line in table.splitlines()[1:]}

    # --- for callers that kill trainers or send them away ---------------------------------

    def leave(self, rng):
        """Tells a trainer to leave, if that loses no element. Returns its name, or None."""
        with self.lock:
            reading = [seat for seat in self.seats if self.kind.leaves and not seat.ended and not seat.leaving]
            if not reading or self.may_be_refused:
                return None
            seat = rng.choice(reading)
            seat.leaving = True
            return seat.process.name

    def kill_trainers(self, rng, pause):
        """Kills one trainer, or all trainers that step together, for `pause` seconds. Returns their names, or None.

        Spares a trainer without a state, because others would get its elements only after its timeout.
        """
        with self.lock:
            reading = [seat for i, seat in enumerate(self.seats) if not seat.ended and not seat.killed
                       and (self.has_states if self.kind.name == "rounds" else self._checkpoint(i).exists())]
            if self.kind.name != "rounds" and reading:
                reading = [rng.choice(reading)]
            for seat in reading:
                seat.kill(pause)
            return [seat.process.name for seat in reading] or None

    # --- counting ------------------------------------------------------------------

    def verdict(self):
        """Returns (elements, lost, doubled); Failed if rounds are torn."""
        reads = [read for log in self.logs for read in history(log)]
        lost, doubled = self._differences(reads)
        if self.kind.name == "rounds":
            check_rounds(self.name, self.logs, len(self.partitions))
        return len(reads), lost, self.doubled_before + doubled

    def _differences(self, reads):
        wanted = self.kind.numbers(self.count)
        if self.kind.name == "off":  # each partition has all elements
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
        return lost, doubled

    def all_reads(self):
        """Returns all elements that its trainers received, including those that a kill removed from their histories."""
        return [Read(*map(int, line.split())) for log in self.logs for line in log.read_text().splitlines()
                if line[0].isdigit()]

    def commits(self):
        """Returns the times at which the dispatcher answered commits, in microseconds since 1970, by trainer."""
        return [[int(line.split()[2]) for line in log.read_text().splitlines() if line.startswith("committed ")]
                for log in self.logs]
