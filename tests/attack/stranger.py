# SPDX-License-Identifier: Apache-2.0
"""A client without a library: it registers any bytes as a dataset, makes a job of them, and holds a session with its token."""
import contextlib
import re
import time

import http2
import links
from messages import BYTES, VARINT, field, fixed64, nested, parse
from ports import connect

SERVICE = "/penstock.control.wire.Dispatcher/"
SPEC_OF_INT64 = 9768703853481152960  # fingerprint; tests/fuzz/corpus/dataset_definition_fuzz/Range
PATIENCE = 20  # seconds for a call


def register_and_read(run, definition, use=None):
    """Registers and reads the definition: first with a wrong fingerprint, then with the one that the error names.

    `use` reads it, instead of read_over_tcp."""
    run.bytes += len(definition)
    (run.folder / f"definition-{run.connections % 64:02}").write_bytes(definition)
    fingerprint = run.rng.getrandbits(63)
    for reads in (None, use or read_over_tcp):
        with run.connection(5) as peer:
            error = Stranger(run, http2.Connection(peer, run.token), reads).read(definition, fingerprint)
            if not (named := re.search(rb"but ([0-9a-f]+) on this worker", error)):
                return
            fingerprint = int(named[1], 16)


def read_over_tcp(run, offers, hello):
    """Reads elements until nothing comes for 0.2 s. Returns whether anything came."""
    before = run.received
    with contextlib.suppress(OSError), connect(offers["tcp"], 0.2) as peer:
        peer.sendall(links.over_tcp(hello) + links.over_tcp(links.update(1000)))
        while not run.over() and (got := peer.recv(1 << 16)):
            run.received += len(got)
    return run.received > before


class Stranger:
    """A client that registers a dataset, makes a job of it, and holds a session.

    `use(run, offers, hello)`, if given, opens links to a worker, and returns whether the session may end."""

    def __init__(self, run, link, use):
        self.run, self.link, self.use = run, link, use
        self.number = run.rng.getrandbits(62)
        self.calls = 0
        self.until = 0  # when the session ends

    def _call(self, method, *parts):
        self.calls += 1
        request = nested(1, fixed64(1, self.number), field(2, VARINT, self.calls))
        answer = self.link.call(SERVICE + method, b"".join((request, *parts)), PATIENCE)
        return None if answer is None else parse(answer)

    def read(self, definition, fingerprint):
        """Holds a session for up to 2 s. Returns the error with which the job ended, or b""."""
        spec = fixed64(2, SPEC_OF_INT64), field(3, BYTES, b"int64"), field(4, VARINT, -2)
        with self.job(definition, nested(5, fixed64(1, fingerprint), *spec)) as (job, token):
            return self._session(job, token) if job else b""

    @contextlib.contextmanager
    def job(self, definition, summary, terms=b""):
        """A job of that dataset: its number and token; (0, b"") if the dispatcher refuses. The end of the block removes it."""
        if (registered := self._call("GetOrRegisterDataset", field(4, BYTES, definition), summary)) is None:
            yield 0, b""
            return
        name, dataset = b"harm %d" % self.number, registered[1][0]
        made = self._call("GetOrCreateJob", field(2, BYTES, name), field(4, BYTES, dataset), terms)
        yield (made[1][0], made[3][0]) if made else (0, b"")
        for method in ("CancelJob", "RemoveJob"):
            self.link.call(SERVICE + method, field(1, BYTES, name), PATIENCE)
        # So that growth is a leak, not a dataset that the dispatcher keeps.
        self.link.call(SERVICE + "UnregisterDataset", field(1, BYTES, dataset), PATIENCE)

    def open_session(self, job, token):
        """Begins a session of the job; returns its stream."""
        stream = self.link.open(SERVICE + "ClientSession")
        version = field(1, VARINT, 2) + field(2, VARINT, 2)
        hello = nested(1, field(1, VARINT, job), fixed64(3, self.number), fixed64(4, self.number + 2), field(6, BYTES, token),
                       field(8, BYTES, version))
        self.link.send(stream, http2.message(hello))
        return stream

    def _session(self, job, token):
        """Answers fences, and uses the first worker. Returns the error with which the job ended, or b""."""
        stream = self.open_session(job, token)
        self.until = time.monotonic() + min(2, max(0.2, self.run.until - time.monotonic()))
        iteration = 0
        while (answer := self.link.answer(stream, self.until - time.monotonic())) is not None:
            its = parse(answer)
            if 1 in its:  # Welcome
                iteration = parse(its[1][0])[1][0]
            if 4 in its:  # Fence
                self.link.send(stream, http2.message(nested(3, its[4][0])))  # the same numbers in the answer
            if 9 in its:  # error
                return its[9][0]
            if self.use and (offers := offers_of(its)):
                if self.use(self.run, offers, links.hello(token, self.number, self.number + 2, iteration)):
                    break
        return b""


def offers_of(down):
    """Returns the addresses of the first worker in a Membership that has a partition, by protocol; {} without one."""
    membership = parse(down[3][0]) if 3 in down else {}
    if 2 not in membership:
        return {}
    for worker in membership.get(3, []):
        offers = [parse(offer) for offer in parse(worker).get(3, [])]
        return {offer[1][0].decode(): offer[2][0].decode() for offer in offers}
    return {}
