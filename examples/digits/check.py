#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts lost and duplicated rows from the trainers' logs and the TFRecord files.

    check.py --files 'train-*.tfrecord' --epochs N LOG…

Does not use Penstock: it reads the record numbers from the files and compares
them with the trained rows in the logs, pass by pass. If a trainer was restarted
from a state, the rows that it had logged after that state do not count.
"""
import argparse
import collections
import glob
import struct
import sys


def records(path):
    """Yields the payloads of a TFRecord file."""
    with open(path, "rb") as file:
        while header := file.read(12):
            (length,) = struct.unpack("<Q", header[:8])
            yield file.read(length)
            file.read(4)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Yields (number, value) of each field of a protobuf message: bytes or integers."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 2:
            length, at = varint(data, at)
            yield tag >> 3, data[at:at + length]
            at += length
        elif tag & 7 == 0:
            value, at = varint(data, at)
            yield tag >> 3, value
        else:
            raise ValueError(f"unexpected wire type {tag & 7}; these files have only 0 and 2")


def number_of(example):
    """Returns the int64 feature "number" of a tf.train.Example."""
    for _, features in fields(example):
        for _, entry in fields(features):
            key, feature = (value for _, value in fields(entry))
            if key == b"number":
                (_, int64_list), = fields(feature)
                (_, packed), = fields(int64_list)
                return packed if isinstance(packed, int) else varint(packed, 0)[0]
    raise ValueError('a record has no feature "number"')


def history(path):
    """Returns the rows (pass, number) in one trainer's history, and whether its log has an end."""
    rows = []
    ended = False
    with open(path) as log:
        for line in log:
            kind, *words = line.split()
            if kind == "batch":
                rows += [(int(words[0]), int(number)) for number in words[1:]]
            elif kind == "restored":
                del rows[int(words[0]):]
            elif kind == "end":
                ended = True
    return rows, ended


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("logs", nargs="+")
    args = parser.parse_args()

    expected = collections.Counter(
        number_of(record) for path in glob.glob(args.files) for record in records(path))
    if not expected:
        sys.exit(f"check: no records in {args.files}")
    passes = collections.defaultdict(collections.Counter)
    unfinished = []
    for path in args.logs:
        rows, ended = history(path)
        if not ended:
            unfinished.append(path)
        for epoch, number in rows:
            passes[epoch][number] += 1

    lost = sum(expected.values()) * max(0, args.epochs - len(passes))
    doubled = 0
    for epoch in sorted(passes):
        for number in expected.keys() | passes[epoch].keys():
            difference = passes[epoch][number] - expected[number]
            lost += max(0, -difference)
            doubled += max(0, difference)
    elements = sum(sum(counter.values()) for counter in passes.values())
    print(f"lost={lost} doubled={doubled} elements={elements} passes={len(passes)}")
    for path in unfinished:
        print(f"check: {path} has no end: its trainer did not finish", file=sys.stderr)
    ok = lost == doubled == 0 and len(passes) == args.epochs and not unfinished
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
