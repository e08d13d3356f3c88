#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A peer without a system: its elements are numbers that it makes itself.

    counting_peer.py SOURCE_DIR counting    counts
    counting_peer.py SOURCE_DIR skipping    leaves a number out
"""
import itertools
import os
import sys

SOURCE_DIR, NAME = sys.argv[1:]
sys.path.insert(0, os.path.join(SOURCE_DIR, "bench", "peers"))
import wire


def start(setup: wire.Setup) -> wire.Peer:
    skipped = 3 if NAME == "skipping" else None
    numbers = (number for number in itertools.count() if number != skipped)
    due = itertools.count()
    shares = [0]

    def read(number: int) -> int:
        if number != next(due):
            raise wire.WrongElement(f"number {number} was not due")
        shares[0] += 1
        return setup.element_bytes

    print("a library that prints")
    return wire.Peer(pids={"consumer": [os.getpid()]},
                     about={"system": "counting", "version": "1", "protocol": "none", "variant": "",
                            "settings": {"touch": setup.touch}},
                     next=numbers.__next__, read=read, shares=lambda: list(shares))


if __name__ == "__main__":
    if NAME not in ("counting", "skipping"):
        print('{"error": "%s is not installed"}' % NAME)
        sys.exit(1)
    sys.exit(wire.serve(start))
