#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A dispatcher is replaced by one that does not know the messages of its predecessor.

It begins without a journal, or after its journal was lost, while a trainer or a worker of the earlier
life is away; or from an older copy of its journal. No trainer reads another's elements or misses its
own: each reads its own job whole, or gets the reason why it cannot. The last line reports the result.
"""
import os
import shutil
import subprocess

import program
import scenes
from fleet import Failed, differences


def trainer_of_the_life_before(scene):
    """Its job's number belongs to another job now."""
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
    """Its messages about its partitions would be taken for those of another job."""
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
    """Returns a reader, or the process that restores its state, of a dispatcher that began from an older copy."""
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
    """Readers that are ahead of the copy are refused, and so are others that would get their elements."""
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


def replaced_between_dataset_and_job(scene):
    """The new dispatcher gave the number of the trainer's dataset to another one."""
    os.environ["PENSTOCK_FAIL_POINT"] = "append_before_answer:3"  # records: its start, the dataset, the job
    try:
        fleet = scene.fleet(journal=True)
    finally:
        del os.environ["PENSTOCK_FAIL_POINT"]
    with fleet:
        before = scene.open(fleet, "before", 1500, "--keep-taken")
        before.say("all")
        fleet.dispatcher.child.wait()
        records = subprocess.run([scene.args.bin / "penstock", "journal", "print", scene.journal], check=True,
                                 capture_output=True, text=True).stdout
        if "dataset_registered" not in records:
            raise Failed("the dispatcher ended before the dataset was registered")
        shutil.rmtree(scene.journal)
        before.pause()
        scene.replace(fleet)
        fleet.start_worker()
        after = scene.open(fleet, "after", 700, "--keep-taken")
        after.expect(f"read {scene.rng.randrange(10, 200)}", "read")
        before.go_on()
        if (answer := before.hear(60)) != "end":
            raise Failed(f"{before.name} answered 'all' with '{answer}'")
        if any(differences([before.log], before.count)):
            raise Failed(f"{before.name} read elements that are not in its dataset")
        scene.whole(after)


SCENES = [trainer_of_the_life_before, worker_of_the_life_before, older_copy, older_copy_and_a_restarted_trainer,
          copy_that_lacks_nothing, replaced_between_dataset_and_job]


def run(args, folder, found):
    scenes.play(SCENES, args, folder, found)


if __name__ == "__main__":
    program.conclude(program.parser(__doc__, seeds=True).parse_args(), run, scenes=0)
