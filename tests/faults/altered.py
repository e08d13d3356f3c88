#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bits are altered on their way between workers and trainers (tcp), without harm.

Two workers, each with a relay that alters a bit now and then, and two trainers that share a job.
A wrong checksum ends a link, and its elements are sent again: each number is read once, with its
own bytes. requests: alters what trainers send, under the default. all: alters what workers send too,
with checksum_values. --no-checksum-values shows that the second fails without them.
"""
import argparse
import contextlib
import os
import pathlib
import random
import socket
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "soak"))
from fleet import Failed, Fleet, differences  # noqa: E402

# (elements, int64 values in each): in frames, and in slots of their own.
JOBS = [(20000, 1), (4000, 2000), (600, 20000)]
LEAST = 20  # fewer altered bits prove nothing
STUCK = 120  # seconds without an end that only a broken program takes


class Relay:
    """Forwards connections at `port` to the worker's port and back, and alters a bit now and then."""

    def __init__(self, worker_port, every, rng):
        self.worker_port, self.every, self.rng, self.altered = worker_port, every, rng, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            try:
                worker = socket.create_connection(("127.0.0.1", self.worker_port))
            except OSError:
                client.close()
                continue
            for source, sink, way in ((client, worker, "requests"), (worker, client, "elements")):
                threading.Thread(target=self.pump, args=(source, sink, self.every.get(way)), daemon=True).start()

    def pump(self, source, sink, every):
        """Forwards one way; alters a bit in about every `every` bytes, or none."""
        left = self.rng.expovariate(1 / every) if every else float("inf")
        with contextlib.suppress(OSError):
            while piece := bytearray(source.recv(1 << 16)):
                while left < len(piece):
                    piece[int(left)] ^= 1 << self.rng.randrange(8)
                    self.altered += 1
                    left += max(1, self.rng.expovariate(1 / every))
                left -= len(piece)
                sink.sendall(piece)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def start_worker(fleet, every, rng):
    port = free_port()
    relay = Relay(port, every, rng)
    worker = fleet.start("worker", fleet.penstock, "worker", "--dispatcher-address", fleet.service, "--port", 0,
                         "--data-transfer-protocol", "tcp", "--data-transfer-port", port,
                         "--data-transfer-address", f"127.0.0.1:{relay.port}")
    worker.hear_match(r"worker ready at localhost:(\d+)")
    return relay


def read(fleet, trainers, name, count, words):
    logs = [fleet.folder / f"{name}-{i}.log" for i in range(len(trainers))]
    for trainer, log in zip(trainers, logs):
        trainer.expect(f"open {name} {count} {words} {log} {log}.checkpoint", "open")
    for trainer in trainers:
        trainer.say("all")
    for trainer in trainers:
        if (answer := trainer.hear(STUCK)) != "end":
            raise Failed(f"{trainer.name}: {answer}")
    for trainer in trainers:
        trainer.expect("close", "closed")
    lost, doubled = differences(logs, count)
    if lost or doubled:
        raise Failed(f"{name}: lost={lost} doubled={doubled}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin", type=pathlib.Path)
    parser.add_argument("--seed", default=3, type=int)
    parser.add_argument("--no-checksum-values", action="store_true")
    parser.add_argument("what", choices=["requests", "all"])
    args = parser.parse_args()
    every = {"requests": 2000}
    if args.what == "all":
        every["elements"] = 4 << 20
        os.environ["PENSTOCK_CLIENT_CHECKSUM_VALUES"] = "false" if args.no_checksum_values else "true"
    why, relays = "", []
    with tempfile.TemporaryDirectory(prefix="penstock-altered-") as folder:
        try:
            with Fleet(args.bin.resolve(), pathlib.Path(folder), "tcp", 5000) as fleet:
                rng = random.Random(args.seed)
                relays = [start_worker(fleet, every, rng) for _ in range(2)]
                trainers = [fleet.start_trainer() for _ in range(2)]
                for number, (count, words) in enumerate(JOBS):
                    read(fleet, trainers, f"job-{number}", count, words)
                if sum(relay.altered for relay in relays) < LEAST:
                    raise Failed("too few bits were altered")
        except Failed as failure:
            why = f" {failure}"
    altered = sum(relay.altered for relay in relays)
    print(f"altered: {'failed' if why else 'ok'} {args.what} seed={args.seed} bits={altered}{why}")
    sys.exit(1 if why else 0)


if __name__ == "__main__":
    main()
