#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A trainer with committed states is away for longer than every time-out, and its part waits for it.

It is killed -9 behind the end of an epoch of which it had committed a part. When it is declared dead and
the time of job_gc_timeout is over, it comes back with its state; or another one comes without. Each record is in one
kept history once in each epoch. The last line says how it went.
"""
import time

import program
import scenes
from fleet import Failed, differences_of, history, kept

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
        """Each behind the end of an epoch, of which it had kept a part, until all time-outs are over."""
        for mode, trainer in self.trainers.items():
            epoch = COUNT * (WORKERS if mode == "off" else 1)
            first = self.scene.rng.randrange(1, epoch)
            trainer.expect(f"read {first}", "read")
            trainer.expect("commit", "committed")
            trainer.expect(f"read {epoch - first + self.scene.rng.randrange(1, epoch // 2)}", "read")
            trainer.kill()
        deadline = time.monotonic() + 60
        while self.fleet.dispatcher.errors.read_text().count("client_dead") < len(self.trainers):
            if time.monotonic() > deadline:
                raise Failed("trainers that are away are not declared dead")
            time.sleep(0.05)
        time.sleep(3 * TIMEOUT_MS / 1000)


def fleet_of(scene):
    return scene.fleet("--job-gc-timeout-ms", TIMEOUT_MS, journal=True, client_timeout_ms=TIMEOUT_MS)


def end(away):
    """Trainers of all modes take up what those that are away have left; counts."""
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
    """It has no state, and gets what nobody has committed."""
    with fleet_of(scene) as fleet:
        away = Away(scene, fleet)
        away.leave()
        for mode in MODES:
            (scene.folder / f"{mode}.state").unlink()
        end(away)


def run(args, folder, found):
    scenes.play([comes_back, comes_back_behind_a_restart, another_comes], args, folder, found)


if __name__ == "__main__":
    program.conclude(program.parser(__doc__, seeds=True).parse_args(), run, scenes=0)
