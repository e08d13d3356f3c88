# SPDX-License-Identifier: Apache-2.0
"""Attacks on the gRPC ports of dispatchers and workers, and clients with wrong tokens at every port that asks for one."""
import os
import time

import http2
import links
import messages
from attacking import MIB, attack
from ports import PREFACE


@attack("grpc")
def random_frames(run):
    """Frames of HTTP/2 of any type, with any flags, streams and lengths, after an honest preface."""
    rng = run.rng
    while not run.over():
        with run.connection(0.2) as peer:
            run.send(peer, PREFACE + http2.frame(http2.SETTINGS))
            for _ in range(rng.randrange(1, 30)):
                payload = rng.randbytes(rng.choice((0, 4, 8, 100, 16384)))
                length = rng.choice((None, None, None, 0, 1, (1 << 24) - 1))
                run.send(peer, http2.frame(rng.randrange(12), rng.choice((0, 1, 4, 5, 8, 32, rng.randrange(256))),
                                           rng.choice((0, 1, 3, 2, rng.getrandbits(31))), payload, length))
            peer.recv(100)


@attack("grpc", bound_mib=600)
def frame_floods(run):
    """Streams that are opened and reset at once; pings, settings, and header blocks that never end, without a pause.

    600 MiB: 32 strangers, 192 KiB each, of which a byte that opens a stream costs gRPC up to 100. A longer attack may have more
    (docs/security.md)."""
    call = http2.call_headers("/penstock.control.wire.Dispatcher/GetVersion")
    while not run.over():
        kind = run.rng.randrange(4)
        with run.connection(1) as peer:
            run.send(peer, PREFACE + http2.frame(http2.SETTINGS))
            for n in range(200):
                stream = 2 * n + 1
                run.send(peer, (
                    http2.frame(http2.HEADERS, http2.END_HEADERS, stream, call) + http2.frame(http2.RESET, 0, stream, bytes(4)),
                    http2.frame(http2.PING, 0, 0, bytes(8)) * 100,
                    http2.frame(http2.SETTINGS, 0, 0, b"\0\4" + run.rng.randbytes(4)) * 100,
                    http2.frame(http2.CONTINUATION if n else http2.HEADERS, 0, 1, http2.field("x", bytes(8000))),
                )[kind])


@attack("grpc")
def huge_messages(run):
    """Messages of gRPC that announce 4 GiB, of which 300 MB come; and headers of 16 MB."""
    while not run.over():
        with run.connection() as peer:
            link = http2.Connection(peer)
            stream = link.open(run.rng.choice(_paths(run)))
            link.send(stream, http2.message(b"", 0xFFFFFFF0), until=run.until)
            for _ in range(300):
                if run.over() or not link.send(stream, bytes(MIB), until=min(run.until, time.monotonic() + 2)):
                    break
                run.bytes += MIB
        with run.connection() as peer:
            large = http2.field("x", bytes(16000))
            run.send(peer, PREFACE + http2.frame(http2.SETTINGS) + http2.frame(http2.HEADERS, 0, 1, large))
            for _ in range(1000):
                run.send(peer, http2.frame(http2.CONTINUATION, 0, 1, large))


def _paths(run):
    """Returns the methods that this port serves."""
    if run.at_dispatcher:
        return [method.path for method in run.schema.methods]
    return [links.LINK_METHOD]


@attack("grpc")
def random_messages(run):
    """Calls of each method with messages of the right type and random fields, or with recorded messages that are changed."""
    if not run.at_dispatcher:
        return _random_link_messages(run)
    recorded = messages.recorded()
    while not run.over():
        with run.connection() as peer:
            link = http2.Connection(peer, run.rng.choice((None, "wrong", run.token, run.token, run.token)))
            for _ in range(50):
                if run.over():
                    break
                method = run.rng.choice(run.schema.methods)
                stream = link.open(method.path)
                kept = recorded["worker_up" if "Worker" in method.path else "client_up"]
                for _ in range(run.rng.randrange(1, 8) if method.is_stream else 1):
                    body = run.schema.random(run.rng, method.request)
                    if method.is_stream and run.rng.random() < 0.7:
                        body = messages.mutated(run.rng, run.rng.choice(kept))
                    run.bytes += len(body)
                    run.keep(method.path.encode() + b"\n" + body)
                    link.send(stream, http2.message(body))
                link.read_until(time.monotonic() + 0.01)


def _random_link_messages(run):
    recorded = links.recorded()
    while not run.over():
        with run.connection() as peer:
            link = http2.Connection(peer)
            stream = link.open(links.LINK_METHOD)
            for body in links.some_messages(run.rng, recorded):
                run.keep(body)
                run.bytes += len(body)
                link.send(stream, http2.message(body))
            link.read_until(time.monotonic() + 0.05)


@attack("grpc", "tcp", "shm")
def wrong_tokens(run):
    """Clients without the job's token: on a link, hellos for each iteration; at the dispatcher, sessions of each job."""
    while not run.over():
        token = run.rng.choice((b"", bytes(16), run.rng.randbytes(16), run.rng.randbytes(4000)))
        number = run.rng.randrange(1, 40)
        with run.connection(0.5) as peer:
            if run.port.kind == "tcp":
                run.send(peer, links.over_tcp(links.hello(token, iteration=number)))
            elif run.port.kind == "shm":
                hello = links.hello(token, iteration=number)
                made = links.control_segment(hello)
                links.send_packet(peer, links.packet(links.GREETING, links.SHM_VERSION, len(hello)), [made])
                os.close(made)
            else:
                _call_with_token(run, peer, token, number)
                continue
            peer.recv(4096)


def _call_with_token(run, peer, token, number):
    link = http2.Connection(peer, run.rng.choice((None, "wrong", run.token)))
    if run.at_dispatcher:
        path = "/penstock.control.wire.Dispatcher/ClientSession"
        body = messages.nested(1, messages.field(1, messages.VARINT, number), messages.fixed64(3, 7), messages.fixed64(4, 8),
                               messages.field(6, messages.BYTES, token),
                               messages.nested(8, messages.field(1, messages.VARINT, 2), messages.field(2, messages.VARINT, 2)))
    else:
        path, body = links.LINK_METHOD, links.hello(token, iteration=number)
    stream = link.open(path)
    link.send(stream, http2.message(body))
    link.answer(stream, 0.5)
