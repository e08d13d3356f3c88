# SPDX-License-Identifier: Apache-2.0
"""Scenes: the actions of a few processes one after the other, with numbers drawn from a seed."""
import concurrent.futures
import random
import shutil

from fleet import Failed, Fleet, differences


class Scene:
    def __init__(self, args, folder, seed):
        self.args, self.folder, self.seed, self.rng = args, folder, seed, random.Random(seed)
        self.journal = folder / "journal"

    def fleet(self, *flags, journal=False, client_timeout_ms=3000, protocol=None, **how):
        if journal:
            flags = [*flags, "--work-dir", self.journal, "--fault-tolerant-mode"]
        return Fleet(self.args.bin, self.folder, protocol or self.args.protocol, client_timeout_ms, dispatcher_flags=flags,
                     **how)

    def open(self, fleet, job, count, *options, state=None, **how):
        reader = fleet.start_trainer(*options, **how)
        reader.count = count
        reader.log = self.folder / f"{job}-{fleet.started['trainer']}.log"
        reader.state = self.folder / f"{state or job}.state"
        reader.expect(f"open {job} {count} 1 {reader.log} {reader.state}", "open", "resumed")
        return reader

    def replace(self, fleet):
        fleet.dispatcher.kill()
        fleet.start_dispatcher()
        fleet.dispatcher.hear_match("ready at")

    @staticmethod
    def whole(reader, *others):
        """The reader reads to its end, and every element comes once."""
        reader.expect("all", "end", seconds=60)
        lost, doubled = differences([reader.log, *(other.log for other in others)], reader.count)
        if lost or doubled:
            raise Failed(f"{reader.name}: lost={lost} doubled={doubled}")

    @staticmethod
    def refused(reader, order, *words):
        answer = reader.ask(order, seconds=60)
        if not answer.startswith("error ") or not all(word in answer for word in words):
            raise Failed(f"{reader.name} answered '{order}' with '{answer}'")


def play(scenes, args, folder, found, at_once=1):
    """Plays each of `scenes` with a Scene of each seed, `at_once` at a time; counts them in found.scenes.

    Failed, after all have been played, with the failures of all.
    """
    def play_one(scene, seed):
        its = folder / f"{scene.__name__}-{seed}"
        its.mkdir()
        try:
            scene(Scene(args, its, seed))
        except Failed as failure:
            print(f"  {scene.__name__}, seed {seed}, failed: {failure}", flush=True)
            return f"{scene.__name__}, seed {seed}: {failure}"
        found.scenes += 1
        if not args.keep:
            shutil.rmtree(its)
        return None

    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        played = [pool.submit(play_one, scene, seed)
                  for seed in range(args.seed, args.seed + args.seeds) for scene in scenes]
    if failures := [one.result() for one in played if one.result()]:
        raise Failed("; ".join(failures))
