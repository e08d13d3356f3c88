#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Altered states whose numbers of splits overflow are refused, and harm nobody but the process that restores them.

A trainer reads a job of a dispatcher with a journal. Meanwhile jobs are begun with such states, and the dispatcher
is restarted from its journal. Each state is refused with a reason, and the trainer has each record once. The last
line reports the result.
"""
import program
import scenes
from fleet import Failed


def altered_states(scene):
    with scene.fleet(journal=True) as fleet:
        for _ in range(3):
            fleet.start_worker()
        reader = scene.open(fleet, "job", 1000)
        reader.expect(f"read {scene.rng.randrange(50, 300)}", "read")
        for life in range(2):
            hostile = fleet.start("hostile", fleet.binaries / "fault_hostile_restore", "--service", fleet.service,
                                  "--job", f"hostile-{life}")
            tries = [line for line in iter(hostile.lines.get, None)]
            if hostile.child.wait() != 0 or not tries:
                raise Failed(f"{hostile.name}: {hostile.errors.read_text()}")
            for line in tries:
                if "more splits than the source has" not in line and "is outside" not in line:
                    raise Failed(f"a forged state was answered with '{line}'")
            if fleet.dispatcher.child.poll() is not None:
                raise Failed(f"{fleet.dispatcher.name} ended: {fleet.dispatcher.errors.read_text()[-2000:]}")
            scene.replace(fleet)
        scene.whole(reader)


def run(args, folder, found):
    scenes.play([altered_states], args, folder, found)


if __name__ == "__main__":
    program.conclude(program.parser(__doc__, seeds=True).parse_args(), run, scenes=0)
