# SPDX-License-Identifier: Apache-2.0
"""The jobs that a soak reads at once, one of each kind, and how their elements are counted."""
import collections
import pathlib
import threading
import time
from typing import NamedTuple

from fleet import Failed, Gone, Read, history, kept

PATIENCE = 600  # seconds for one order; that nothing moves at all is noticed far earlier (soak.py)
ROUNDS_BETWEEN_STATES = 50
READ_BETWEEN_LEAVES = 20  # elements
# What a dispatcher says to those that another one, or a later record, had told of their job.
OF_ANOTHER_LIFE = ("not the one that this reader began with", "older copy of the journal", "is not known to this dispatcher",
                   "it has lost its journal")


# What it says to one that was declared dead, whose state was written and not committed any more.
NEVER_COMMITTED = ("contains elements that were never committed", "is not the last one that it committed")
OTHERS_ARE_DEAD = "cannot be given out"  # in what a consumer of rounds hears


class Refused(Failed):
    """A reader of a job is told that this dispatcher does not have it as it was."""


class NeverCommitted(Failed):
    """A reader that was declared dead restores what it had not committed: others have read that."""


class Kind(NamedTuple):
    """What is read, and by whom."""
    name: str
    trainers: int
    flags: list  # of soak_trainer
    filtered: bool = False
    passes: int = 1
    share: float = 1.0  # of the numbers that other kinds read
    most_words: int = 1 << 20  # int64 values in an element
    leaves: bool = False  # its trainers keep what they take, and may leave

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
    Kind("taken", 2, ["--keep-taken", "--shuffle", 16, "--shuffle-behind", 32, "--prefetch", 8], leaves=True),
]


class Seat:
    """A trainer's place: its process, and the one that takes it up after a kill. For a job's thread and the striker's."""

    def __init__(self, fleet, kind, i, step_us):
        rounds = kind.name == "rounds"
        flags = [*kind.flags, "--step-us", step_us, *(["--consumer", i] if rounds else [])]
        self.start = lambda: fleet.start_trainer(*flags, commit_every=1 << 40 if rounds else 100)
        self.process = self.start()
        self.killed = self.ended = self.leaving = False
        self.pause = 0.0  # seconds until it is started again

    def kill(self, pause):
        self.killed, self.pause = True, pause
        self.process.kill()

    def revive(self):
        time.sleep(self.pause)
        self.process = self.start()
        self.killed = False


class Job:
    """One job of a kind: read by threads of its own until all its trainers have seen the end.

    Where the dispatcher was replaced by one that does not have it as it was, another job begins in its place.
    """

    def __init__(self, kind, seats, fleet, name, count, words):
        self.kind, self.seats, self.fleet = kind, seats, fleet
        self.first_name, self.count, self.words = name, count, words
        self.lock = threading.Lock()  # over killed, ended and leaving of the seats
        self.error = None
        self.may_be_refused = False  # the dispatcher was replaced while it was read
        self.begun = self.doubled_before = 0  # jobs, and what was doubled in those that were refused
        self._begin()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _begin(self):
        self.name = f"{self.first_name}-{self.begun}" if self.begun else self.first_name
        self.begun += 1
        self.logs = [self.fleet.folder / f"{self.name}-{i}.log" for i in range(len(self.seats))]
        self.has_states = False  # of rounds, all consumers
        self.partitions = set()  # as the dispatcher names them, at the end
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
        """Whether it was read to its end and closed; it was refused otherwise."""
        refused, failed = [], []

        def guarded(read, *args):
            try:
                read(*args)
            except Refused as error:
                refused.append(error)
            except Exception as error:  # pylint: disable=broad-except
                failed.append(error)
                self.error = error  # of which the others need not wait for the end

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
        """What was read until it was refused: nothing came twice, but what a trainer had not kept that was killed."""
        with self.lock:
            killed = [seat.killed for seat in self.seats]
            reads = [kept(log) if i < len(killed) and killed[i] else history(log) for i, log in enumerate(self.logs)]
        self.doubled_before += self._differences([read for its in reads for read in its])[1]
        for i, seat in enumerate(self.seats):
            if killed[i]:
                seat.revive()

    def _ask(self, i, order, *answers):
        """Its answer, one of `answers`."""
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
        """One trainer, which goes on from its own state after a kill."""
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
        """To the state before the one that it wrote last, or to none."""
        checkpoint = self._checkpoint(i)
        checkpoint.unlink()  # it is not refused twice
        before = pathlib.Path(f"{checkpoint}.before")
        if before.exists():
            before.rename(checkpoint)

    def _read_and_leave(self, i):
        """Where it is told to leave, another reader takes its place, with a log of its own.

        That one knows nothing of a dispatcher's life before: of a new dispatcher it would get everything anew.
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
                raise Refused(f"{self.seats[i].process.name} came to {self.name} while the dispatcher was replaced")

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
                    self._all_hear("saved")
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
        return self._all_hear(*answers, again=order)

    def _all_hear(self, *answers, again=""):
        """Of all, also behind one that is refused: each order has its answer.

        The first that comes back where all were dead hears that the others are; the order given again waits for them.
        """
        heard, refused, until = {}, None, time.monotonic() + PATIENCE
        while pending := [i for i in range(len(self.seats)) if i not in heard]:
            # None may be waited for before another one: that may have to be told to go on.
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

    # --- for who kills trainers, or sends them away ---------------------------------

    def leave(self, rng):
        """Tells a trainer to leave, where that loses nothing; its name, or None."""
        with self.lock:
            reading = [seat for seat in self.seats if self.kind.leaves and not seat.ended and not seat.leaving]
            if not reading or self.may_be_refused:
                return None
            seat = rng.choice(reading)
            seat.leaving = True
            return seat.process.name

    def kill_trainers(self, rng, pause):
        """Kills one trainer, or all of those that step together, for `pause` seconds; their names, or None if all have ended.

        Who has written no state yet is spared: what it claims is only given to others when its time is out.
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
        """(elements, lost, doubled); Failed if rounds are torn."""
        reads = [read for log in self.logs for read in history(log)]
        lost, doubled = self._differences(reads)
        if self.kind.name == "rounds":
            self._check_rounds()
        return len(reads), lost, self.doubled_before + doubled

    def _differences(self, reads):
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
        return lost, doubled

    def _check_rounds(self):
        """Each round is one row of one partition; the remainders at the end come from several."""
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
