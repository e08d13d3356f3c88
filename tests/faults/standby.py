#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A standby takes over from the leading dispatcher, which is killed, stopped for some time or stopped for good.

Three etcd processes elect the leader. The journal is in etcd, or in a folder that both dispatchers
reach. Workers and trainers know the addresses of both. Two trainers share a job, and read each
element once. The last line reports the result.
"""
import signal
import time

import program
import etcds
import scenes
from fleet import Failed

COUNT = 6000


def in_etcd(scene, etcd):
    return ["--journal", etcd.url(), "--journal-key-file", scene.folder / "key"]


def on_volume(scene, etcd):
    return ["--work-dir", scene.journal, "--fault-tolerant-mode", "--leader-election", etcd.url()]


class Takeover:
    """A leader, a standby, two workers, and two trainers that have read a part of their job."""

    def __init__(self, scene, fleet):
        self.fleet = fleet
        self.ports = [fleet.port, *etcds.free_ports(1)]  # of the leader, and of the standby
        fleet.service += f",127.0.0.1:{self.ports[1]}"
        self.leader = fleet.dispatcher
        self.standby = self.add_standby()
        for _ in range(2):
            fleet.start_worker()
        self.readers = [scene.open(fleet, "job", COUNT, state=f"job-{i}") for i in range(2)]
        for reader in self.readers:
            reader.expect(f"read {scene.rng.randrange(50, 1500)}", "read")

    def add_standby(self):
        self.fleet.port = self.ports[1]
        self.fleet.start_dispatcher()
        standby = self.fleet.dispatcher
        deadline = time.monotonic() + 60
        while " standby leader=" not in standby.errors.read_text():
            if time.monotonic() > deadline:
                raise Failed(f"{standby.name} does not become a standby")
            time.sleep(0.02)
        return standby

    def await_standby(self):
        """Returns when the standby leads."""
        began = time.monotonic()
        self.standby.hear_match("ready at", seconds=60)
        self.ports.reverse()
        print(f"  {self.standby.name} leads after {time.monotonic() - began:.1f} s", flush=True)

    def finish(self, scene):
        for reader in self.readers:
            reader.say("all")
        for reader in self.readers:
            if (answer := reader.hear(120)) != "end":
                raise Failed(f"{reader.name}: {answer}")
        lost, doubled = scenes.differences([reader.log for reader in self.readers], COUNT)
        if lost or doubled:
            raise Failed(f"lost={lost} doubled={doubled}")


def played(name, flags, act):
    """Returns a scene of that name: `act` with a Takeover, between the trainers' first elements and their last."""
    def scene(scene):
        with etcds.Etcds(scene.folder) as etcd, scene.fleet(*flags(scene, etcd)) as fleet:
            takeover = Takeover(scene, fleet)
            act(scene, takeover, etcd)
            takeover.finish(scene)
    scene.__name__ = name
    return scene


def kill(_, takeover, __):
    takeover.leader.kill()
    takeover.await_standby()


def kill_twice(_, takeover, __):
    kill(_, takeover, __)
    leader, takeover.standby = takeover.standby, takeover.add_standby()
    leader.kill()
    takeover.await_standby()


def kill_with_an_etcd(scene, takeover, etcd):
    etcd.kill(scene.rng.randrange(3))
    takeover.leader.kill()
    takeover.await_standby()


def lose_the_majority(_, takeover, etcd):
    """Nobody leads until etcd has a majority again."""
    for member in range(2):
        etcd.kill(member)
    if takeover.leader.child.wait(60) == 0:
        raise Failed("the leader did not say why it ended")
    for member in range(2):
        etcd.start(member)
    takeover.await_standby()


def stop_cleanly(_, takeover, __):
    takeover.leader.child.send_signal(signal.SIGTERM)
    takeover.await_standby()
    if takeover.leader.child.wait(60) != 0:
        raise Failed("the leader failed when it was stopped")


def stand_still(_, takeover, __):
    """The leader continues after another leads, while trainers and workers are still connected to it."""
    takeover.leader.pause()
    takeover.await_standby()
    takeover.leader.go_on()
    if takeover.leader.child.wait(60) == 0:
        raise Failed("the old leader did not say why it ended")
    if "leads no longer" not in (said := takeover.leader.errors.read_text()):
        raise Failed(f"the old leader ended for another reason: {said[-500:]}")


SCENES = [played(*parts) for parts in (
    ("killed", in_etcd, kill),
    ("killed_twice", in_etcd, kill_twice),
    ("killed_with_an_etcd", in_etcd, kill_with_an_etcd),
    ("without_majority", in_etcd, lose_the_majority),
    ("stopped_cleanly", in_etcd, stop_cleanly),
    ("stood_still", in_etcd, stand_still),
    ("killed_on_volume", on_volume, kill),
    ("stopped_cleanly_on_volume", on_volume, stop_cleanly))]


def run(args, folder, found):
    wanted = [scene for scene in SCENES if args.scene in ("", scene.__name__)]
    scenes.play(wanted, args, folder, found)


if __name__ == "__main__":
    parser = program.parser(__doc__, seeds=True)
    parser.add_argument("--scene", default="", help="only the scene of this name")
    program.conclude(parser.parse_args(), run, scenes=0)
