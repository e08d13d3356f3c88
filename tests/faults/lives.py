#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A dispatcher is replaced by one that does not know what the one before it said.

It begins without a journal, while a trainer or a worker of its life before is away; or from an older
copy of its journal. Nobody reads what another has, or misses what nobody has: each trainer reads its
own job whole, or is told why it cannot. The last line says how it went.
"""
import argparse
import pathlib
import random
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "soak"))
from fleet import Failed, Fleet, differences  # noqa: E402


class Scene:
    def __init__(self, args, folder, seed):
        self.args, self.folder, self.rng = args, folder, random.Random(seed)
        self.journal = folder / "journal"

    def fleet(self, journal=False):
        flags = ["--work-dir", self.journal, "--fault-tolerant-mode"] if journal else []
        return Fleet(self.args.bin.resolve(), self.folder, self.args.protocol, 3000, dispatcher_flags=flags)

    def open(self, fleet, job, count, *options):
        reader = fleet.start_trainer(*options)
        reader.count = count
        reader.log = self.folder / f"{job}-{fleet.started['trainer']}.log"
        reader.state = self.folder / f"{job}.state"
        reader.expect(f"open {job} {count} 1 {reader.log} {reader.state}", "open", "resumed")
        return reader

    def replace(self, fleet):
        fleet.dispatcher.kill()
        fleet.start_dispatcher()
        fleet.dispatcher.hear_match("ready at")

    @staticmethod
    def whole(reader, *others):
        """It reads to its end, and all that there is comes once."""
        reader.expect("all", "end", seconds=60)
        lost, doubled = differences([reader.log, *(other.log for other in others)], reader.count)
        if lost or doubled:
            raise Failed(f"{reader.name}: lost={lost} doubled={doubled}")

    @staticmethod
    def refused(reader, order, *words):
        answer = reader.ask(order, seconds=60)
        if not answer.startswith("error ") or not all(word in answer for word in words):
            raise Failed(f"{reader.name} answers '{order}' with '{answer}'")


def trainer_of_the_life_before(scene):
    """It has the number of another job now."""
    with scene.fleet() as fleet:
        fleet.start_worker()
        before = scene.open(fleet, "before", 1500, "--keep-taken")
        before.expect(f"read {scene.rng.randrange(50, 700)}", "read")
        before.pause()
        scene.replace(fleet)
        after = scene.open(fleet, "after", 1500, "--keep-taken")
        after.expect(f"read {scene.rng.randrange(10, 200)}", "read")
        before.go_on()
        scene.refused(before, "all", "not the one that this reader began with")
        scene.whole(after)


def worker_of_the_life_before(scene):
    """What it says of its partitions is said of those of another job."""
    with scene.fleet() as fleet:
        worker = fleet.start_worker()
        before = scene.open(fleet, "before", 100, "--keep-taken")
        before.expect(f"read {scene.rng.randrange(1, 90)}", "read")
        worker.pause()
        scene.replace(fleet)
        before.kill()
        after = scene.open(fleet, "after", 5000, "--keep-taken")
        worker.go_on()
        scene.whole(after)


def told_more_than_the_copy_has(scene, fleet, restarts):
    """A reader, or the process that takes up its state, of a dispatcher that began from an older copy."""
    fleet.start_worker()
    reader = scene.open(fleet, "job", 1000)
    reader.expect(f"read {scene.rng.randrange(50, 300)}", "read")
    shutil.copytree(scene.journal, scene.folder / "copy")
    reader.expect(f"read {scene.rng.randrange(50, 300)}", "read")
    reader.expect("commit", "committed")
    if restarts:
        reader.kill()
    fleet.dispatcher.kill()
    shutil.rmtree(scene.journal)
    (scene.folder / "copy").rename(scene.journal)
    fleet.start_dispatcher()
    return scene.open(fleet, "job", 1000) if restarts else reader


def older_copy(scene):
    """Those that are ahead of it are told, and so is whoever would get what they have."""
    with scene.fleet(journal=True) as fleet:
        reader = told_more_than_the_copy_has(scene, fleet, restarts=False)
        scene.refused(reader, "all", "older copy of the journal")
        other = scene.open(fleet, "job", 1000)
        scene.refused(other, "all", "older copy of the journal")


def older_copy_and_a_restarted_trainer(scene):
    """Its state is ahead of the copy."""
    with scene.fleet(journal=True) as fleet:
        again = told_more_than_the_copy_has(scene, fleet, restarts=True)
        scene.refused(again, "all", "older copy of the journal")


def copy_that_lacks_nothing(scene):
    with scene.fleet(journal=True) as fleet:
        fleet.start_worker()
        reader = scene.open(fleet, "job", 1000)
        reader.expect(f"read {scene.rng.randrange(50, 300)}", "read")
        reader.expect("commit", "committed")
        fleet.dispatcher.kill()
        scene.journal.rename(scene.folder / "moved")
        shutil.copytree(scene.folder / "moved", scene.journal)
        fleet.start_dispatcher()
        scene.whole(reader)


SCENES = [trainer_of_the_life_before, worker_of_the_life_before, older_copy, older_copy_and_a_restarted_trainer,
          copy_that_lacks_nothing]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin", type=pathlib.Path)
    parser.add_argument("--protocol", default="shm")
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--seeds", default=1, type=int, help="how many, from --seed on")
    args = parser.parse_args()
    why, done = "", 0
    try:
        for seed in range(args.seed, args.seed + args.seeds):
            for scene in SCENES:
                with tempfile.TemporaryDirectory(prefix="penstock-lives-") as folder:
                    try:
                        scene(Scene(args, pathlib.Path(folder), seed))
                    except Failed as failure:
                        raise Failed(f"{scene.__name__}, seed {seed}: {failure}")
                done += 1
    except Failed as failure:
        why = f" {failure}"
    print(f"lives: {'failed' if why else 'ok'} protocol={args.protocol} seed={args.seed} scenes={done}{why}")
    sys.exit(1 if why else 0)


if __name__ == "__main__":
    main()
