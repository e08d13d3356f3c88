#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One attack on one port, as a process. The last line is its report, as JSON: connections, bytes, and seconds of CPU.

    tests/attack/attacker.py random_bytes dispatcher-0 grpc 127.0.0.1:5050 --seed 3 --seconds 5

replays what a run of attack.py has sent to that port, as far as the peer's own timing permits."""
import argparse
import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "soak"))

import attacks_admitted  # noqa: E402, F401: these list their attacks
import attacks_any  # noqa: E402, F401
import attacks_bombs  # noqa: E402, F401
import attacks_definitions  # noqa: E402, F401
import attacks_grpc  # noqa: E402, F401
import attacks_links  # noqa: E402, F401
import attacks_sessions  # noqa: E402, F401
import attacks_unread  # noqa: E402, F401
from attacking import ATTACKS, Run  # noqa: E402
from ports import Port  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attack", choices=ATTACKS)
    parser.add_argument("owner")
    parser.add_argument("kind")
    parser.add_argument("address")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--folder", type=pathlib.Path, help="for the inputs of the last connections")
    args = parser.parse_args()
    folder = args.folder or pathlib.Path(tempfile.mkdtemp(prefix="penstock-attacker-"))
    folder.mkdir(exist_ok=True)
    run = Run(Port(args.owner, args.kind, args.address), args.seed, args.seconds, folder)
    ATTACKS[args.attack].run(run)
    print(json.dumps({"connections": run.connections, "bytes": run.bytes, "received": run.received,
                      "cpu_s": round(time.process_time(), 3), "runnable_s": round(runnable_s(), 3)}))


def runnable_s():
    """Returns the time for which this process had a CPU or waited for one."""
    tasks = pathlib.Path("/proc/self/task").glob("*/schedstat")
    return sum(int(time_ns) for task in tasks for time_ns in task.read_text().split()[:2]) / 1e9


if __name__ == "__main__":
    main()
