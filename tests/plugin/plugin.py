#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads through a plug-in on two workers, one of which is killed with kill -9.

First the refusals: a worker with a plug-in of another release, and one whose
settings do not allow it. Then a trainer reads from a worker without the plug-in: its
error names the kind and the flag. Then two workers have it, and a trainer commits
repeatedly; one worker is killed in the middle and none takes its place.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools" / "soak"))
from fleet import Failed, Fleet, differences  # noqa: E402

COUNT, WORDS = 40000, 500


def expect(condition, what):
    if not condition:
        raise Failed(what)


def refused(args, *flags):
    """Returns the output of a worker that does not start."""
    worker = subprocess.run([args.penstock, "worker", "--dispatcher-address", "localhost:1", *map(str, flags)],
                            capture_output=True, text=True, timeout=60)
    expect(worker.returncode != 0, f"a worker started with {flags}")
    return worker.stderr


def refusals(args, folder):
    said = refused(args, "--plugins", args.other)
    expect("FAILED_PRECONDITION" in said and "plugin interface 4711" in said and "build it again" in said, said)
    elsewhere = folder / "plugins"
    elsewhere.mkdir()
    said = refused(args, "--plugins", args.plugin, "--plugin-allow", elsewhere)
    expect("PERMISSION_DENIED" in said and "plugin-allow" in said and str(elsewhere) in said, said)
    elsewhere.rmdir()
    print("plugin: unusable plugins are refused with the reason", flush=True)


def open_job(fleet, trainer, job):
    log = fleet.folder / f"{job}.log"
    answer = trainer.ask(f"open {job} {COUNT} {WORDS} {log} {fleet.folder}/{job}.checkpoint")
    expect(answer == "open", f"{trainer.name}: {answer}")
    trainer.say("all")
    return log


def lacking(fleet):
    """A worker without the plug-in, alone."""
    plugin, fleet.plugin = fleet.plugin, []
    worker = fleet.start_worker()
    fleet.plugin = plugin
    trainer = fleet.start_trainer()
    open_job(fleet, trainer, "lacking")
    said = trainer.hear(60)
    # Functions are prepared before sources.
    expect("NOT_FOUND" in said and "function 'spread' version 1" in said and "--plugins" in said, said)
    for process in (trainer, worker):
        process.kill()
    print(f"plugin: a worker without it: {said}", flush=True)


def killed(fleet):
    workers = [fleet.start_worker() for _ in range(2)]
    trainer = fleet.start_trainer()
    log = open_job(fleet, trainer, "killed")
    deadline = time.monotonic() + 60
    while not log.exists() or len(log.read_text().splitlines()) < COUNT // 4:
        expect(time.monotonic() < deadline, "nothing was read")
        time.sleep(0.01)
    workers[0].kill()
    answer = trainer.hear(120)
    expect(answer == "end", f"{trainer.name}: {answer}")
    expect(trainer.ask("close") == "closed", "the trainer did not close")
    return differences([log], COUNT)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag in ("bin", "penstock", "plugin", "other"):
        parser.add_argument(f"--{flag}", required=True, type=pathlib.Path)
    args = parser.parse_args()
    why = ""
    lost = doubled = -1
    with tempfile.TemporaryDirectory(prefix="penstock-plugin-") as name:
        folder = pathlib.Path(name)
        try:
            refusals(args, folder)
            with Fleet(args.bin, folder, "shm", client_timeout_ms=5000, penstock=args.penstock,
                       plugin=args.plugin) as fleet:
                lacking(fleet)
                lost, doubled = killed(fleet)
        except Failed as failure:
            why = f" {failure}"
    ok = not why and lost == 0 and doubled == 0
    print(f"plugin: {'ok' if ok else 'failed'} elements={COUNT} lost={lost} doubled={doubled}{why}")
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
