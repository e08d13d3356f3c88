#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads small and large elements for a long time and checks that memory stays flat.

A dispatcher, two workers and a reader, which checks every element. Their resident
memory, descriptors and threads are sampled each second. After a warm-up of a tenth of
the time, the second half's largest sample may exceed the first's only by SPARE. The
last line reports the result.
"""
import time

import program
from fleet import MOST_OF_GRPC, Failed, Fleet

# How far the second half may exceed the first. Allocators keep some memory, and slots are made when more elements than
# ever before are on their way at once.
SPARE = {"MiB of its own": 4, "MiB shared": 16, "segments": 40, "descriptors of segments": 40, "descriptors": 2,
         "threads": 0, "threads of gRPC": MOST_OF_GRPC}


class Held:
    """The resources of one process, second by second."""

    def __init__(self, process):
        self.process, self.samples = process, []

    def sample(self):
        self.samples.append({**self.process.memory(), **self.process.holds()})

    def growth(self, what):
        """Returns by how much the largest sample of the second half exceeds that of the first, without the warm-up."""
        values = [sample[what] for sample in self.samples]
        first, second = values[len(values) // 10:len(values) // 2], values[len(values) // 2:]
        return max(second) - max(first)

    def complaints(self):
        return [f"{self.process.name} holds {self.growth(what):.1f} {what} more in the second half than in the first"
                for what in SPARE if self.growth(what) > SPARE[what]]

    def words(self):
        first, last = self.samples[len(self.samples) // 10], self.samples[-1]
        return f"{self.process.name} " + ", ".join(
            f"{first[what]:.1f} → {last[what]:.1f} {what}" for what in ("MiB of its own", "MiB shared"))


def run(args, folder, found):
    with Fleet(args.bin, folder, args.protocol, client_timeout_ms=60000) as fleet:
        workers = [fleet.start_worker() for _ in range(2)]
        reader = fleet.start("reader", fleet.binaries / "fault_soak_reader", "--service", fleet.service,
                             "--protocol", args.protocol, "--rate", args.rate)
        held = [Held(process) for process in [reader, *workers, fleet.dispatcher]]
        end = time.monotonic() + args.seconds
        while time.monotonic() < end or found.elements < args.elements:
            second = time.monotonic() + 1
            while time.monotonic() < second:
                found.elements = int(reader.hear_match(r"read (\d+)", 60)[1])
            for process in held:
                process.sample()
    print("\n".join(f"  {process.words()}" for process in held))
    if complaints := [line for process in held for line in process.complaints()]:
        raise Failed("; ".join(complaints))


if __name__ == "__main__":
    parser = program.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="minimum duration in seconds")
    parser.add_argument("--elements", type=int, default=10**7, help="minimum number of elements")
    parser.add_argument("--rate", type=float, default=0, help="maximum elements per second; 0: no limit")
    program.conclude(parser.parse_args(), run, elements=0)
