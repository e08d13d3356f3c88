# SPDX-License-Identifier: Apache-2.0
"""A job that is read while the dispatcher that leads fails, with a standby, and how long its trainers got nothing."""
import time
from typing import NamedTuple

import waiting
from dispatchers import Dispatchers
from fleet import Failed, differences_of, history

STEP_US = 10000  # of each trainer, for each element


class Outcome(NamedTuple):
    lost: int
    doubled: int
    silence: float  # the longest time between two elements of one trainer, in seconds
    unreachable: float  # seconds for which the fault kept the trainers from any leader


class Takeover(Dispatchers):
    """A leader, a standby, two workers, and two trainers that read a job of `count` elements.

    In a fleet with a `network`, "dispatcher" is the leader's host, "standby" the standby's.
    """

    def __init__(self, scene, fleet, etcd, count, trainer_flags=()):
        self.scene, self.etcd, self.count = scene, etcd, count
        self.of_leader = fleet.service  # without the standby's address
        super().__init__(fleet)
        self.flags = ["--step-us", STEP_US, *trainer_flags]
        self.commit_every = scene.rng.choice([25, 1000])
        self.workers = [fleet.start_worker() for _ in range(2)]
        self.readers = [self.open(f"job-{i}") for i in range(2)]
        for reader in self.readers:
            reader.expect(f"read {scene.rng.randrange(20, 200)}", "read", seconds=120)

    def open(self, state, **how):
        return self.scene.open(self.fleet, "job", self.count, *self.flags, state=state,
                               **{"commit_every": self.commit_every, **how})

    def read(self, act):
        """Calls act(self) while the trainers read, and returns the Outcome, once all is read. `act` returns the seconds for
        which no leader could be reached, if the fault prevents it."""
        began = time.time_ns() // 1000
        for reader in self.readers:
            reader.say("all")
        unreachable = act(self) or 0
        for reader in self.readers:
            if (answer := reader.hear(600)) != "end":
                raise Failed(f"{reader.name}: {answer}")
        read = [history(reader.log) for reader in self.readers]
        lost, doubled = differences_of([one for reads in read for one in reads], self.count)
        times = [[began, *(one.at for one in reads if one.at > began)] for reads in read]
        silence = max((after - before) / 1e6 for its in times for before, after in zip(its, its[1:]))
        return Outcome(lost, doubled, silence, unreachable)

    def await_reading(self):
        """Returns when each trainer has read an element more."""
        for reader in self.readers:
            size = reader.log.stat().st_size
            waiting.await_true(lambda: reader.log.stat().st_size > size, f"{reader.name} does not read on")

    def await_loss(self):
        """Returns when the leader has ended because it has lost its place."""
        if self.leader.child.wait(60) == 0:
            raise Failed("the old leader did not say why it ended")
        if "leads no longer" not in (said := self.leader.errors.read_text()):
            raise Failed(f"the old leader ended for another reason: {said[-500:]}")

    def replace_readers(self):
        """Kills the trainers. Their successors read on from their states."""
        for i, former in enumerate(self.readers):
            former.kill()
            self.readers[i] = self.fleet.start_trainer(*self.flags, commit_every=self.commit_every)
            self.readers[i].log, self.readers[i].state = former.log, former.state
            self.readers[i].expect(f"open job {self.count} 1 {former.log} {former.state}", "resumed", "open", seconds=60)
            self.readers[i].say("all")

    def cut_off(self, *hosts):
        """Drops the packets between the leader and these hosts. Returns a function that ends this."""
        for host in hosts:
            self.fleet.network.cut("dispatcher", host)
        return lambda: [self.fleet.network.mend("dispatcher", host) for host in hosts]

    def peers(self):
        return [process.name for process in (*self.workers, *self.readers)]
