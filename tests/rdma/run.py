#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boots virtual machines with software RDMA devices and runs a scene in them.

    run.py SCENE --build FOLDER [--tests PROGRAM…]

Ends with 77, which CTest shows as skipped, where qemu is not installed; with
CI=true in the environment that is a failure.
"""
import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import time

import image
import kernel
import vm

SKIPPED = 77
# The programs of guest/ that the scene's machines run; a cable joins two machines.
SCENES = {"one_machine": ("one_machine",), "demos": ("demos",), "pages": ("pages",),
          "two_machines": ("workers_machine", "trainer_machine")}
TOOLS = (vm.QEMU, "busybox", "cpio", "/sbin/modprobe", "ibv_devinfo", "/sbin/tc")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", choices=SCENES)
    parser.add_argument("--tests", nargs="*", default=[], type=pathlib.Path, help="programs that the scene runs")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="folder of the built programs")
    parser.add_argument("--seconds", type=float, default=570, help="seconds after which a machine counts as stuck")
    return parser.parse_args()


def missing_tools():
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def boot(linux, archive, programs, cable, logs):
    """Boots the machines; the second finds the first at the other end of the cable."""
    machines = []
    for end, program in enumerate(programs):
        devices = vm.cable(cable, end) if len(programs) > 1 else ()
        machines.append(vm.Machine(linux, archive, program, logs / f"{program}.log", devices))
        while len(programs) > 1 and not cable.exists() and machines[-1].runs():
            time.sleep(0.02)
    return machines


def watch(machines, deadline):
    """Waits until all have ended or one has failed; returns the failure, empty if there is none."""
    while True:
        failures = [machine.failure() for machine in machines if not machine.runs()]
        if any(failures):
            return [failure for failure in failures if failure]
        if len(failures) == len(machines):
            return []
        if time.monotonic() > deadline:
            return [f"{machine.scene} has not ended" for machine in machines if machine.runs()]
        time.sleep(0.1)


def main():
    args = parse_arguments()
    if missing := missing_tools():
        print(f"rdma: left out, since this machine lacks {', '.join(missing)}; ./run deps rdma installs them")
        sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)
    cache = image.ROOT / "build/rdma"
    linux = kernel.get(cache)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="penstock-rdma-") as name:
        folder = pathlib.Path(name)
        archive = image.build(folder / args.scene, linux, args.build.resolve(), args.tests)
        print(f"rdma: Linux {linux.version}, {archive.stat().st_size >> 20} MiB of programs", flush=True)
        machines = boot(linux, archive, SCENES[args.scene], folder / "cable", cache)
        try:
            failures = watch(machines, began + args.seconds)
        finally:
            for machine in machines:
                machine.stop()
    for machine in machines:
        print(f"=== {machine.scene}\n{machine.text()}")
    print(f"rdma: {'; '.join(failures) or args.scene + ' ended well'} after {time.monotonic() - began:.0f} s")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
