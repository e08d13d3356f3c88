#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dispatcher that leads, or the etcd processes that elected it, fail while two trainers read a job. A standby waits.

The leader is killed, stops for a time or for good, or is cut off from etcd or from its clients; etcd processes are
killed. The journal is in etcd, or in a folder that both dispatchers reach. Each element must be read once, and reading
must go on in time: the silence is the longest time between two elements of one trainer. Scenes with cuts are left out
where namespaces are not permitted. A line reports each scene, and the last line the result.
"""
import contextlib
import functools
import signal
import statistics
import time
from typing import Callable, NamedTuple

import program
import etcds
import scenes
from fleet import Failed
from network import Network, NotPermitted
from takeover import Takeover
from waiting import await_words

LEASE = 3  # seconds, by default
STOP = 60  # seconds for which a leader stands still
MAJORITY = 20  # seconds for which etcd has no majority
ELECTION = 2  # seconds that etcd takes to elect its own leader, by default


def killed(takeover):
    takeover.leader.kill()
    takeover.await_takeover()


def killed_twice(takeover):
    killed(takeover)
    takeover.await_reading()
    takeover.replace_leader()
    killed(takeover)


def killed_with_an_etcd(takeover):
    takeover.etcd.kill(takeover.scene.rng.randrange(3))
    killed(takeover)


def etcd_killed(takeover):
    """An etcd process that does not lead the others: the dispatcher goes on."""
    takeover.etcd.kill((takeover.etcd.await_leader() + takeover.scene.rng.randrange(1, 3)) % 3)
    time.sleep(3 * LEASE)
    if takeover.leader.child.poll() is not None:
        raise Failed("the leader ended with one etcd process")


def etcd_leader_killed(takeover):
    """The dispatcher goes on, or the standby takes over: both are correct."""
    takeover.etcd.kill(takeover.etcd.await_leader())
    time.sleep(3 * LEASE)
    if takeover.leader.child.poll() is not None:
        takeover.await_takeover()


def without_majority(takeover):
    """Nobody leads until etcd has a majority again."""
    members = takeover.scene.rng.sample(range(3), 2)
    back = time.monotonic() + MAJORITY
    for member in members:
        takeover.etcd.kill(member)
    takeover.await_loss()
    time.sleep(max(0, back - time.monotonic()))
    for member in members:
        takeover.etcd.start(member)
    takeover.await_takeover()
    return MAJORITY + ELECTION + LEASE  # etcd's new leader lets each lease begin again


def stopped_cleanly(takeover):
    takeover.leader.child.send_signal(signal.SIGTERM)
    takeover.await_takeover()
    if takeover.leader.child.wait(60) != 0:
        raise Failed("the leader failed when it was stopped")


def stood_still(takeover):
    """The leader stands still for a minute."""
    goes_on = time.monotonic() + STOP
    takeover.leader.pause()
    takeover.await_takeover()
    time.sleep(max(0, goes_on - time.monotonic()))
    takeover.leader.go_on()
    takeover.await_loss()


def deposed_leader_is_asked(takeover):
    """The leader goes on when another leads. Meanwhile a trainer that knows only the old one has asked it to commit. The old
    one must not: what this trainer has read is read by others."""
    held = takeover.open("held", service=takeover.of_leader, commit_every=1 << 40)
    held.expect("read 20", "read")
    takeover.leader.pause()
    held.say("commit")
    takeover.await_takeover()
    takeover.leader.go_on()
    takeover.await_loss()
    if not (answer := held.hear(60)).startswith("error UNAVAILABLE"):
        raise Failed(f"{held.name}, which knows only a leader that was replaced, got '{answer}'")
    held.kill()


def cut_from_etcd(takeover):
    mend = takeover.cut_off(*(f"etcd-{member}" for member in range(3)))
    takeover.await_loss()
    takeover.await_takeover()
    mend()


def cut_from_clients(takeover):
    """The leader goes on, since etcd reaches it. Trainers wait, and say for what."""
    seconds = takeover.scene.rng.uniform(5, 20)
    mend = takeover.cut_off(*takeover.peers())
    time.sleep(seconds)
    mend()
    if takeover.leader.child.poll() is not None:
        raise Failed("the leader ended, although etcd reached it")
    return seconds


def cut_from_clients_for_good(takeover):
    """Trainers end with an error, in Next() or in Commit(). They read on from their states, when an operator has stopped
    the leader."""
    began = time.monotonic()
    takeover.cut_off(*takeover.peers())
    for reader in takeover.readers:
        answer = reader.hear(60)
        if answer.startswith("error UNAVAILABLE: no dispatcher answers at"):
            await_words(reader, ' for="the dispatcher at ')
        elif "did not confirm a commit within" not in answer:
            raise Failed(f"{reader.name}, which is cut off from the leader, got '{answer}'")
    stopped_cleanly(takeover)
    takeover.replace_readers()
    return time.monotonic() - began


def in_etcd(scene, etcd):
    return etcd.journal_flags()


def on_volume(scene, etcd):
    return ["--work-dir", scene.journal, "--fault-tolerant-mode", "--leader-election", etcd.url()]


class Plan(NamedTuple):
    act: Callable  # with the Takeover; see Takeover.read
    place: Callable = in_etcd  # of the journal
    hosts: bool = False  # each process has a host of its own
    count: int = 2000  # elements of the job
    client_timeout_ms: int = 60000
    trainer_flags: tuple = ()


SCENES = {
    "killed": Plan(killed),
    "killed_twice": Plan(killed_twice),
    "killed_with_an_etcd": Plan(killed_with_an_etcd),
    "etcd_killed": Plan(etcd_killed),
    "etcd_leader_killed": Plan(etcd_leader_killed),
    "without_majority": Plan(without_majority),
    "stopped_cleanly": Plan(stopped_cleanly),
    "stood_still": Plan(stood_still, count=14000),
    "deposed_leader_is_asked": Plan(deposed_leader_is_asked, client_timeout_ms=10000, trainer_flags=("--timeout-s", 10)),
    "cut_from_etcd": Plan(cut_from_etcd, hosts=True),
    "cut_from_clients": Plan(cut_from_clients, hosts=True),
    "cut_from_clients_for_good": Plan(cut_from_clients_for_good, hosts=True, client_timeout_ms=5000,
                                      trainer_flags=("--timeout-s", 12)),
    "killed_on_volume": Plan(killed, on_volume),
    "stopped_cleanly_on_volume": Plan(stopped_cleanly, on_volume),
}


def play(name, outcomes, scene):
    plan = SCENES[name]
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(Network()) if plan.hosts else None
        etcd = stack.enter_context(etcds.Etcds(scene.folder, network))
        fleet = stack.enter_context(scene.fleet(
            *plan.place(scene, etcd), client_timeout_ms=plan.client_timeout_ms, worker_timeout_ms=10000,
            heartbeat_interval_ms=1000, network=network, protocol="tcp" if network else None))
        outcome = Takeover(scene, fleet, etcd, plan.count, plan.trainer_flags).read(plan.act)
    outcomes.append(outcome)
    print(f"  {name}, seed {scene.seed}: silence {outcome.silence:.1f} s"
          + (f", for {outcome.unreachable:.1f} s no leader could be reached" if outcome.unreachable else ""), flush=True)
    if outcome.lost or outcome.doubled:
        raise Failed(f"lost={outcome.lost} doubled={outcome.doubled}")
    if outcome.silence > outcome.unreachable + scene.args.patience:
        raise Failed(f"a trainer got nothing for {outcome.silence:.1f} s")


def report(name, outcomes):
    silences = [outcome.silence for outcome in outcomes]
    print(f"{name}: {len(outcomes)} runs, {sum(outcome.lost for outcome in outcomes)} lost, "
          f"{sum(outcome.doubled for outcome in outcomes)} doubled"
          + (f", silence {statistics.median(silences):.1f} s (median), {max(silences):.1f} s (max)" if silences else ""))


def run(args, folder, found):
    names = args.scenes or [name for name in SCENES if not SCENES[name].hosts or are_permitted()]
    outcomes = {name: [] for name in names}
    wanted = [functools.partial(play, name, outcomes[name]) for name in names]
    for scene, name in zip(wanted, names):
        scene.__name__ = name
    try:
        scenes.play(wanted, args, folder, found, args.at_once)
    finally:
        for name in names:
            report(name, outcomes[name])


def are_permitted():
    """Returns whether the scenes with hosts of their own can be played here."""
    try:
        with Network():
            return True
    except NotPermitted as because:
        print(f"  scenes with cuts are left out: {because}")
        return False


if __name__ == "__main__":
    parser = program.parser(__doc__, seeds=True)
    parser.add_argument("--scenes", nargs="*", choices=SCENES, help="only these")
    parser.add_argument("--at-once", type=int, default=1, help="scenes that are played at a time")
    parser.add_argument("--patience", type=float, default=5, help="seconds that a takeover may take, in a trainer's eyes")
    program.conclude(parser.parse_args(), run, scenes=0)
