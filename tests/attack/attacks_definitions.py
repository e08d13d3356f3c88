# SPDX-License-Identifier: Apache-2.0
"""Datasets that a client registers to harm the workers that build them, or the dispatcher that keeps them."""
import contextlib
import re
import time

import http2
import links
from attacking import attack
from messages import BYTES, TREE, VARINT, field, fixed64, mutated, nested, parse
from ports import connect

SERVICE = "/penstock.control.wire.Dispatcher/"
SPEC_OF_INT64 = 9768703853481152960  # fingerprint; tests/fuzz/corpus/dataset_definition_fuzz/Range
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
            yield long_function(size * 10)
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


def register_and_read(run, definition):
    """Registers and reads the definition: first with a wrong fingerprint, then with the one that the error names."""
    run.bytes += len(definition)
    (run.folder / f"definition-{run.connections % 64:02}").write_bytes(definition)
    fingerprint = run.rng.getrandbits(63)
    for reads in (False, True):
        with run.connection(5) as peer:
            error = Stranger(run, http2.Connection(peer), reads).read(definition, fingerprint)
            if not (named := re.search(rb"but ([0-9a-f]+) on this worker", error)):
                return
            fingerprint = int(named[1], 16)


class Stranger:
    """A client that registers a dataset, makes a job of it, and holds a session. `reads`: it also reads elements over tcp."""

    def __init__(self, run, link, reads):
        self.run, self.link, self.reads = run, link, reads
        self.number = run.rng.getrandbits(62)
        self.calls = 0
        self.until = min(run.until, time.monotonic() + 2)

    def _call(self, method, *parts):
        self.calls += 1
        request = nested(1, fixed64(1, self.number), field(2, VARINT, self.calls))
        answer = self.link.call(SERVICE + method, b"".join((request, *parts)), self.until - time.monotonic())
        return None if answer is None else parse(answer)

    def read(self, definition, fingerprint):
        """Holds a session for up to 2 s. Returns the error with which the job ended, or b""."""
        spec = fixed64(2, SPEC_OF_INT64), field(3, BYTES, b"int64"), field(4, VARINT, -2)
        summary = nested(5, fixed64(1, fingerprint), *spec)
        if (registered := self._call("GetOrRegisterDataset", field(4, BYTES, definition), summary)) is None:
            return b""
        name = b"harm %d" % self.number
        if (job := self._call("GetOrCreateJob", field(2, BYTES, name), field(4, BYTES, registered[1][0]))) is None:
            return b""
        error = self._session(job[1][0], job[3][0])
        self.link.call(SERVICE + "RemoveJob", field(1, BYTES, name), 1)
        self.link.call(SERVICE + "UnregisterDataset", field(1, BYTES, registered[1][0]), 1)  # so that growth is a leak
        return error

    def _session(self, job, token):
        """Answers fences, and reads elements from the first worker. Returns the error with which the job ended, or b""."""
        stream = self.link.open(SERVICE + "ClientSession")
        version = field(1, VARINT, 2) + field(2, VARINT, 2)
        hello = nested(1, field(1, VARINT, job), fixed64(3, self.number), fixed64(4, self.number + 2), field(6, BYTES, token),
                       field(8, BYTES, version))
        self.link.send(stream, http2.message(hello))
        iteration = 0
        while (answer := self.link.answer(stream, self.until - time.monotonic())) is not None:
            its = parse(answer)
            if 1 in its:  # Welcome
                iteration = parse(its[1][0])[1][0]
            if 4 in its:  # Fence
                self.link.send(stream, http2.message(nested(3, its[4][0])))  # the same numbers in the answer
            if 9 in its:  # error
                return its[9][0]
            if self.reads and (address := tcp_address(its)):
                if self._read_elements(address, links.hello(token, self.number, self.number + 2, iteration)):
                    break
        return b""

    def _read_elements(self, address, hello):
        """Reads until nothing comes for 0.2 s. Returns how many bytes came."""
        before = self.run.received
        with contextlib.suppress(OSError), connect(address, 0.2) as peer:
            peer.sendall(links.over_tcp(hello) + links.over_tcp(links.update(1000)))
            while time.monotonic() < self.until and (got := peer.recv(1 << 16)):
                self.run.received += len(got)
        return self.run.received - before


def tcp_address(down):
    """Returns the address of tcp on the first worker of a Membership that has a partition; None without one."""
    membership = parse(down[3][0]) if 3 in down else {}
    if 2 not in membership:
        return None
    for worker in membership.get(3, []):
        for offer in map(parse, parse(worker).get(3, [])):
            if offer[1] == [b"tcp"]:
                return offer[2][0].decode()
    return None
