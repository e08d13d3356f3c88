#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dispatcher keeps only counts and ends of finished epochs, however many readers shared them.

A dispatcher with a journal, workers, and readers of one named job, epoch by epoch; each epoch's
elements come once. The bytes that the dispatcher would keep over a restart are measured several times,
with `penstock journal verify`. States are shown, not judged. Memory is judged over at least a thousand
epochs: no process may grow in the second half. The last line reports the result.
"""
import re
import subprocess
import time

import program
from fleet import Failed, Fleet

# Bytes of the dispatcher's state that one epoch may leave; with states, this many more for each reader.
PER_EPOCH, PER_STATE = 24, 40
# Bytes by which the state of a live iteration may vary between moments, with what is on its way.
LIVE = 16 << 10
# MiB by which a process may still grow: pools may meet a moment with more elements under way than ever before.
SPARE = 2


def kept(fleet, journal, live):
    """Returns (bytes of the dispatcher's state without answers to requests, bytes of the journal's folder, past
    iterations), once at most `live` iterations are not past."""
    for _ in range(50):
        said = subprocess.run([fleet.penstock, "journal", "verify", journal], check=True, capture_output=True, text=True)
        found = re.search(r"bytes: (\d+) for .* (\d+) iterations, (\d+) past", said.stdout)
        if int(found[2]) <= live:
            return int(found[1]), sum(file.stat().st_size for file in journal.iterdir()), int(found[3])
        time.sleep(0.2)
    raise Failed(f"{found[2]} iterations are still live: {said.stdout}")


def show(epoch, fleet, journal, workers, readers, states, live):
    state, folder, past = kept(fleet, journal, live)
    memory = {process.name: process.memory()["MiB of its own"] for process in (fleet.dispatcher, *workers, *readers)}
    print(f"epoch {epoch}: state {state} B, journal {folder} B, {past} past; MiB: "
          f"{', '.join(f'{name} {its:.1f}' for name, its in memory.items())}; states {max(states)} B", flush=True)
    return state, memory


def run(args, folder, found):
    journal = folder / "journal"
    flags = ["--work-dir", journal, "--fault-tolerant-mode"]
    with Fleet(args.bin, folder, args.protocol, 60000, dispatcher_flags=flags) as fleet:
        workers = [fleet.start_worker() for _ in range(args.workers)]
        options = [*(["--commits"] if args.commits else []), *(["--endless"] if args.endless else [])]
        readers = [fleet.start("reader", fleet.binaries / "fault_epoch_reader", "--service", fleet.service,
                               "--protocol", args.protocol, "--elements", args.elements, *options)
                   for _ in range(args.readers)]
        sizes, memories = [], []
        for found.epochs in range(1, args.epochs + 1):
            for reader in readers:
                reader.say("epoch")
            answers = [reader.hear_match(r"read (\d+) state (\d+)", 120) for reader in readers]
            read = sum(int(answer[1]) for answer in answers)
            if read != args.elements * (args.readers if args.endless else 1):
                raise Failed(f"epoch {found.epochs}: read {read} elements")
            if found.epochs % (args.epochs // args.samples) == 0:
                states = [int(answer[2]) for answer in answers]
                size, memory = show(found.epochs, fleet, journal, workers, readers, states, int(args.endless))
                sizes.append(size)
                memories.append(memory)
        between = (len(sizes) - 1) * (args.epochs // args.samples)
        found.bytes_an_epoch = round((sizes[-1] - sizes[0]) / between, 1)
        limit = PER_EPOCH + (PER_STATE * args.readers if args.commits else 0) + (LIVE / between if args.endless else 0)
        if found.bytes_an_epoch > limit:
            raise Failed("the state grew by more than counts and ends of epochs take")
        grown = {name: its - memories[len(memories) // 2][name] for name, its in memories[-1].items()}
        found.grown = round(max(grown.values()), 1)
        if args.epochs >= 1000 and found.grown > SPARE:
            raise Failed(f"processes grew by these numbers of MiB in the second half: {grown}")


if __name__ == "__main__":
    parser = program.parser(__doc__)
    parser.add_argument("--epochs", type=int, default=2000)
    parser.add_argument("--elements", type=int, default=10_000, help="of an epoch; with --endless, of each reader")
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--commits", action="store_true", help="use ack_mode = on_commit, a state at each end")
    parser.add_argument("--endless", action="store_true", help="repeat before Distribute")
    program.conclude(parser.parse_args(), run, epochs=0, bytes_an_epoch=0, grown=0)
