#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks, each figure beside its limit. Figures of different
machines, or of different days, are not comparable; ratios are."""
import argparse
import pathlib
import platform
import subprocess


def main():
    parser = argparse.ArgumentParser(prog="./run bench", description=__doc__)
    parser.add_argument("--bin", default="build/release/bin", help=argparse.SUPPRESS)
    parser.add_argument("--pairs", type=int, default=7, help="alternating pairs of ours and the limit")
    parser.add_argument("--seconds", type=float, default=2, help="length of a window")
    parser.add_argument("--record", default="", help="append JSON objects, one a line, to this file")
    parser.add_argument("which", nargs="*", default=["t1", "range", "jpeg"])
    args = parser.parse_args()
    binaries = pathlib.Path(args.bin)
    record = ["--record", args.record] if args.record else []

    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if "model name" in line), "?")
    load = open("/proc/loadavg").read().split()[0]
    print(f"{model}, kernel {platform.release()}, load {load}", flush=True)
    if "t1" in args.which:
        for protocol in ("shm", "tcp", "grpc", "local"):
            subprocess.run([binaries / "service_bench", "t1", "--protocol", protocol, "--pairs", str(args.pairs),
                            "--seconds", str(args.seconds), *record], check=True)
    if "range" in args.which:
        subprocess.run([binaries / "service_bench", "range", *record], check=True)
    if "jpeg" in args.which:
        subprocess.run([binaries / "jpeg_bench"], check=True)


if __name__ == "__main__":
    main()
