# SPDX-License-Identifier: Apache-2.0
"""Clients and workers that the dispatcher admits, and which then send it random messages of the right types."""
import contextlib
import time

import http2
from attacking import attack
from attacks_definitions import RANGE, dataset
from messages import BYTES, VARINT, field, fixed64, mutated, nested, recorded
from stranger import SERVICE, Stranger

TYPES = ".penstock.control.wire."
NOWHERE = b"127.0.0.1:1"  # where nothing listens


@attack("grpc", owner="dispatcher")
def random_jobs(run):
    """Jobs with random summaries and terms, each with a session that sends random reports, commits and answers."""
    kept = recorded()["client_up"]
    while not run.over():
        with run.connection(5) as peer, contextlib.suppress(ValueError):
            stranger = Stranger(run, http2.Connection(peer, run.token), None)
            summary, terms = (run.schema.random(run.rng, TYPES + name) for name in ("DatasetSummary", "JobTerms"))
            terms = nested(8, terms) if run.rng.random() < 0.7 else b""
            with stranger.job(dataset(RANGE), nested(5, summary), terms) as (job, token):
                if job:
                    _talk(run, stranger.link, stranger.open_session(job, token), "ClientUp", kept)


@attack("grpc", owner="dispatcher")
def random_workers(run):
    """Workers that register, and then send random bookmarks, ends and failures. Nothing listens at their addresses."""
    kept = recorded()["worker_up"]
    while not run.over():
        with run.connection(5) as peer:
            link = http2.Connection(peer, run.token)
            stream = open_worker(run, link)
            _talk(run, link, stream, "WorkerUp", kept)


def open_worker(run, link):
    """Registers a worker; returns its stream."""
    stream = link.open(SERVICE + "WorkerSession")
    version = nested(2, field(1, VARINT, 2), field(2, VARINT, 2))
    offer = nested(4, field(1, BYTES, b"tcp"), field(2, BYTES, NOWHERE))
    hello = nested(1, fixed64(1, run.rng.getrandbits(62)), version, field(3, BYTES, NOWHERE), offer, field(6, VARINT, 1))
    link.send(stream, http2.message(hello))
    return stream


def _talk(run, link, stream, kind, kept):
    """Sends a few messages on an open stream, and reads the answers."""
    link.answer(stream, 0.5)
    for _ in range(run.rng.randrange(1, 20)):
        body = run.schema.random(run.rng, TYPES + kind)
        if run.rng.random() < 0.5:
            body = mutated(run.rng, run.rng.choice(kept))
        run.bytes += len(body)
        run.keep(body)
        link.send(stream, http2.message(body))
    link.read_until(time.monotonic() + 0.02)
