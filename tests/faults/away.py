#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A trainer with committed states is away for longer than every time-out, and its part waits for it.

It is killed with kill -9 after the end of an epoch of which it had committed a part. After it is declared dead and
job_gc_timeout has passed, it comes back with its state; or another one comes without. Each record is in one
committed history once in each epoch. The last line reports the result.
"""
import pathlib
import time

import program
import scenes
from fleet import Failed, differences, differences_of, history, kept

COUNT, EPOCHS, WORKERS = 600, 3, 2
TIMEOUT_MS = 1500  # client_timeout, and job_gc_timeout
MODES = {"dynamic": ["--mode", "dynamic"], "off": ["--mode", "off"], "data": ["--mode", "data"], "ordered": ["--ordered"]}


class Away:
    """Jobs of all modes, each with a trainer that is away."""

    def __init__(self, scene, fleet):
        self.scene, self.fleet = scene, fleet
        for _ in range(WORKERS):
            fleet.start_worker()
        self.trainers = {mode: self.open(mode) for mode in MODES}

    def open(self, mode):
        return self.scene.open(self.fleet, mode, COUNT, "--epochs", EPOCHS, *MODES[mode], commit_every=1 << 40)

    def leave(self):
        """Each trainer commits a part of an epoch, reads past its end, and stays away until all time-outs are over."""
        for mode, trainer in self.trainers.items():
            epoch = COUNT * (WORKERS if mode == "off" else 1)
            first = self.scene.rng.randrange(1, epoch)
            trainer.expect(f"read {first}", "read")
            trainer.expect("commit", "committed")
            trainer.expect(f"read {epoch - first + self.scene.rng.randrange(1, epoch // 2)}", "read")
            trainer.kill()
        await_dead(self.fleet, len(self.trainers))
        time.sleep(3 * TIMEOUT_MS / 1000)


def fleet_of(scene):
    return scene.fleet("--job-gc-timeout-ms", TIMEOUT_MS, journal=True, client_timeout_ms=TIMEOUT_MS)


def end(away):
    """Trainers of all modes read the rest of the jobs; counts the records."""
    for mode, before in away.trainers.items():
        after = away.open(mode)
        after.expect("all", "end", seconds=60)
        lost, doubled = differences_of(kept(before.log) + history(after.log), COUNT,
                                       EPOCHS * (WORKERS if mode == "off" else 1))
        if lost or doubled:
            raise Failed(f"mode {mode}: lost={lost} doubled={doubled}")


def comes_back(scene):
    with fleet_of(scene) as fleet:
        away = Away(scene, fleet)
        away.leave()
        end(away)


def comes_back_behind_a_restart(scene):
    with fleet_of(scene) as fleet:
        away = Away(scene, fleet)
        away.leave()
        scene.replace(fleet)
        time.sleep(3 * TIMEOUT_MS / 1000)
        end(away)


def another_comes(scene):
    """It has no state, and gets everything that was not committed."""
    with fleet_of(scene) as fleet:
        away = Away(scene, fleet)
        away.leave()
        for mode in MODES:
            (scene.folder / f"{mode}.state").unlink()
        end(away)


def go_back(reader):
    """Goes back to the state before the one that was written last."""
    pathlib.Path(f"{reader.state}.before").rename(reader.state)


def await_dead(fleet, count):
    deadline = time.monotonic() + 60
    while fleet.dispatcher.errors.read_text().count("client_dead") < count:
        if time.monotonic() > deadline:
            raise Failed("the trainers were away but were not declared dead")
        time.sleep(0.05)


def state_was_never_committed(scene):
    """It was killed between writing a state and committing it. Its restore is refused, while others read and when
    all is read."""
    for ended in (False, True):
        with fleet_of(scene) as fleet:
            for _ in range(WORKERS):
                fleet.start_worker()
            job = f"never-committed-{ended}"
            before = scene.open(fleet, job, COUNT, commit_every=1 << 40)
            before.expect("read 50", "read")
            before.expect("commit", "committed")
            before.expect("read 50", "read")
            before.expect(f"save {before.state}", "saved")
            before.kill()
            await_dead(fleet, 1)
            other = scene.open(fleet, job, COUNT, state=f"{job}-other", commit_every=1 << 40)
            other.expect("all" if ended else "read 10", "end" if ended else "read")
            after = scene.open(fleet, job, COUNT, commit_every=1 << 40)
            why = "is not the last one that it committed" if ended else "contains elements that were never committed"
            scene.refused(after, "all", why, "Restore the last committed state")
            go_back(before)
            after.expect(f"open {job} {COUNT} 1 {after.log} {before.state}", "resumed")
            after.expect("all", "end", seconds=60)
            other.expect("all", "end", seconds=60)
            lost, doubled = differences_of(kept(before.log) + history(other.log) + history(after.log), COUNT, 1)
            if lost or doubled:
                raise Failed(f"lost={lost} doubled={doubled}")


def one_consumer_had_committed(scene):
    """Two were killed while they committed a state of one step. Both go on from it: each step is one consumer's."""
    with fleet_of(scene) as fleet:
        for _ in range(WORKERS):
            fleet.start_worker()

        def open_all():
            return [scene.open(fleet, "rounds", COUNT, "--consumers", 2, "--consumer", i, state=f"consumer-{i}",
                               commit_every=1 << 40) for i in range(2)]

        def all_say(readers, order, answer):
            for reader in readers:
                reader.say(order)
            for reader in readers:
                if (heard := reader.hear(60)) != answer:
                    raise Failed(f"{reader.name}: {heard}")

        before = open_all()
        all_say(before, "read 50", "read")
        all_say(before, "commit", "committed")
        all_say(before, "read 20", "read")
        for reader in before:
            reader.expect(f"save {reader.state}", "saved")
        before[0].expect("keep", "kept")
        for reader in before:
            reader.kill()
        await_dead(fleet, 2)
        after = open_all()
        all_say(after, "all", "end")
        lost, doubled = differences([reader.log for reader in before + after], COUNT)
        if lost or doubled:
            raise Failed(f"lost={lost} doubled={doubled}")


def run(args, folder, found):
    scenes.play([comes_back, comes_back_behind_a_restart, another_comes, state_was_never_committed, one_consumer_had_committed],
                args, folder, found)


if __name__ == "__main__":
    program.conclude(program.parser(__doc__, seeds=True).parse_args(), run, scenes=0)
