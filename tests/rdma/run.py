#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boots a virtual machine with a software RDMA device and runs a scene in it.

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
TOOLS = (vm.QEMU, "busybox", "cpio", "/sbin/modprobe", "ibv_devinfo", "/sbin/tc")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", choices=[file.stem for file in (image.HERE / "guest").glob("*_machine*.py")])
    parser.add_argument("--tests", nargs="*", default=[], type=pathlib.Path, help="programs that the scene runs")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="folder of the built programs")
    parser.add_argument("--seconds", type=float, default=300, help="until a machine counts as stuck")
    return parser.parse_args()


def missing_tools():
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def main():
    args = parse_arguments()
    if missing := missing_tools():
        print(f"rdma: left out, since this machine lacks {', '.join(missing)}; ./run deps rdma installs them")
        sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)
    cache = image.ROOT / "build/rdma"
    linux = kernel.get(cache)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="penstock-rdma-") as folder:
        archive = image.build(pathlib.Path(folder) / args.scene, linux, args.build.resolve(), args.tests)
        print(f"rdma: Linux {linux.version}, {archive.stat().st_size >> 20} MiB of programs", flush=True)
        machine = vm.Machine(linux, archive, args.scene, cache / f"{args.scene}.log")
        try:
            failure = machine.failure(args.seconds)
        finally:
            machine.stop()
    print(machine.text())
    print(f"rdma: {failure or args.scene + ' ended well'} after {time.monotonic() - began:.0f} s")
    sys.exit(1 if failure else 0)


if __name__ == "__main__":
    main()
