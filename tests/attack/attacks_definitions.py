# SPDX-License-Identifier: Apache-2.0
"""Datasets that a client registers to harm the workers that build them, or the dispatcher that keeps them."""
import http2
from attacking import attack
from messages import BYTES, TREE, VARINT, field, fixed64, mutated, nested
from stranger import SERVICE, SPEC_OF_INT64, register_and_read

INT64 = 5  # code of the dtype
MOST_NODES = 1024  # of a definition (dataplane/dataset/graph)
LEAF_OF_INT64 = nested(2, field(1, VARINT, INT64))


def attr(name, number, value):
    """Returns an attribute of a node. `number`: of the field, int 2, truth 4."""
    return nested(3, field(1, BYTES, name), field(number, VARINT, value))


def attr_int(name, value):
    return attr(name, 2, value << 1 if value >= 0 else -2 * value - 1)


def node(op, *attrs, version=1, inputs=1):
    return nested(2, field(1, BYTES, op), field(2, VARINT, version), *attrs, field(4, VARINT, inputs) if inputs else b"",
                  fixed64(5, SPEC_OF_INT64))


def dataset(*nodes):
    return field(1, VARINT, 1) + b"".join(nodes)


RANGE = node(b"Range", attr_int(b"start", 0), attr_int(b"step", 1), attr_int(b"stop", 5), inputs=0)


def chain(count, op, *attrs, version=1):
    """Returns a definition whose nodes each have the one before as input."""
    return dataset(RANGE, node(op, *attrs, version=version) * count)


def nested_spec(depth):
    """Returns a definition whose spec has members in members."""
    spec = LEAF_OF_INT64
    for _ in range(depth):
        spec = field(1, VARINT, 1) + field(3, BYTES, spec)
    return dataset(node(b"RangeOf", nested(3, field(1, BYTES, b"argument"), field(10, BYTES, spec)), inputs=0))


def long_function(count):
    """Returns a definition with a map whose function doubles a number `count` times."""
    operations = (nested(2, field(1, BYTES, b"Add"), field(3, VARINT, n) * 2, nested(4, field(1, VARINT, INT64)))
                  for n in range(count))
    function = b"".join((nested(1, LEAF_OF_INT64), *operations, field(3, VARINT, count), nested(4, LEAF_OF_INT64)))
    attrs = nested(3, field(1, BYTES, b"function"), field(11, BYTES, function)), attr_int(b"num_parallel_calls", -1)
    return dataset(RANGE, node(b"Map", *attrs))


def definitions(rng):
    """Yields harmful definitions: as deep as is allowed, deeper, and with buffers that no machine has."""
    again = attr(b"reshuffle_each_iteration", 4, 1)
    remainder = attr(b"drop_remainder", 4, 0)
    while True:
        for size in (MOST_NODES - 1, 100_000):
            yield chain(size, b"Repeat", attr_int(b"count", 1))
            yield chain(size, b"Repeat", attr_int(b"count", 1 << 40))
            yield chain(size, b"Prefetch", attr_int(b"buffer_size", 1 << 20))
            yield chain(size, b"Shuffle", attr_int(b"buffer_size", 1 << 40), again, version=2)
            yield nested_spec(rng.choice((50, 99, 101, 10_000)))
            yield long_function(min(size, 20_000))
        yield chain(1, b"Batch", attr_int(b"batch_size", 1 << 62), remainder)
        yield chain(30, b"Repeat", attr_int(b"count", 1 << 62))


@attack("grpc", owner="dispatcher", bound_mib=256)
def nested_definitions(run):
    """Registers chains of nodes, nested specs and long functions, and reads them. 256 MiB: definitions of 5 MB, in nodes."""
    made = definitions(run.rng)
    while not run.over():
        register_and_read(run, next(made))


@attack("grpc", owner="dispatcher", bound_mib=256)
def mutated_definitions(run):
    """Registers definitions of the fuzzers' corpus that are changed, and reads them."""
    kept = [path.read_bytes() for path in sorted((TREE / "tests/fuzz/corpus/dataset_definition_fuzz").iterdir())]
    while not run.over():
        register_and_read(run, mutated(run.rng, run.rng.choice(kept)))


@attack("grpc", owner="dispatcher", bound_mib=256)
def large_definitions(run):
    """Registers and reads functions of a million operations, and 8 million unknown fields, in up to 19 MB.

    Workers refuse them before they are parsed."""
    while not run.over():
        register_and_read(run, long_function(1_000_000 + run.rng.randrange(1000)))
        unknown = run.rng.choice((field(15, VARINT, 0), field(15, BYTES, b""), field(2, VARINT, 0), b"\x7b", b"\x7b\x7c"))
        register_and_read(run, dataset(RANGE) + unknown * 8_000_000)


@attack("grpc", owner="dispatcher", bound_mib=256)
def hoarded_definitions(run):
    """Registers 40 definitions of 16 MB that nobody reads in a namespace of its own, and leaves them there.

    256 MiB: the 64 MiB that a namespace may have, once more in a snapshot, and the messages that are being read."""
    for _ in range(40):
        with run.connection(5) as peer:
            number = run.rng.getrandbits(62)
            summary = nested(5, fixed64(1, number), fixed64(2, SPEC_OF_INT64))
            body = nested(1, fixed64(1, number), field(2, VARINT, 1)) + field(4, BYTES, bytes(16 << 20)) + summary + field(10, BYTES, b"hoard")
            run.bytes += len(body)
            http2.Connection(peer, run.token).call(SERVICE + "GetOrRegisterDataset", body)
        if run.over():
            return
