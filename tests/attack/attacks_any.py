# SPDX-License-Identifier: Apache-2.0
"""Attacks on ports of any kind, and on the status pages."""
import contextlib
import resource

import http2
import messages
from attacking import MIB, attack, beginning
from ports import KINDS

CONNECTIONS = 1000  # of `idle_connections`
SLOW_CONNECTIONS = 20
BETWEEN_BYTES = 1.5  # seconds, of `slow_hello`
STREAMS = ("grpc", "pages", "tcp", "ucx")  # kinds whose ports are of TCP


@attack(*KINDS)
def random_bytes(run):
    """Random bytes, half of the time after some bytes of an honest beginning; closed in any way, or reset."""
    while not run.over():
        with run.connection(0.2) as peer:
            begin = beginning(run.rng, run.port.kind) if run.rng.random() < 0.5 else b""
            begin = begin[: run.rng.randrange(len(begin) + 1)] if run.rng.random() < 0.5 else begin
            run.send(peer, begin + run.rng.randbytes(run.rng.choice((1, 8, 64, 1000, 20000))))
            if run.rng.random() < 0.3:
                peer.recv(100)
            if run.rng.random() < 0.3:
                http2.abort(peer)


@attack(*KINDS)
def mutated_beginning(run):
    """An honest client's first bytes, a few of them changed."""
    while not run.over():
        with run.connection(0.2) as peer:
            for _ in range(run.rng.randrange(1, 4)):
                run.send(peer, messages.mutated(run.rng, beginning(run.rng, run.port.kind)))
            peer.recv(100)


@attack(*STREAMS)
def slow_hello(run):
    """Twenty connections that send a byte of an honest beginning every 1.5 s."""
    with contextlib.ExitStack() as held:
        peers = [held.enter_context(peer) for peer in run.open(SLOW_CONNECTIONS)]
        for byte in beginning(run.rng, run.port.kind) * 100:
            for i, peer in enumerate(peers):
                with contextlib.suppress(OSError):
                    run.send(peer, bytes((byte,)))
                    continue
                peers[i : i + 1] = run.open(1)
            run.sleep(BETWEEN_BYTES)
            if run.over():
                return


@attack(*KINDS)
def idle_connections(run):
    """A thousand connections that say nothing; connections that the peer closes are replaced."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    peers = []
    while not run.over():
        peers += run.open(50 if len(peers) < CONNECTIONS else 0)
        peers = [peer for peer in peers if not _is_closed(peer)]
        run.sleep(0.02 if len(peers) < CONNECTIONS else 0.5)
    for peer in peers:
        peer.close()


def _is_closed(peer):
    peer.setblocking(False)
    try:
        while data := peer.recv(4096):
            pass
        closed = data == b""
    except BlockingIOError:
        return False
    except OSError:
        closed = True
    if closed:
        peer.close()
    return closed


@attack("pages")
def strange_requests(run):
    """Requests with lines without an end, thousands of headers, other methods, and tokens of any length."""
    rng = run.rng
    while not run.over():
        with run.connection(0.2) as peer:
            run.send(peer, rng.choice((
                b"GET /" + b"a" * rng.choice((100, 10_000, MIB)),
                b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * rng.choice((10, 10_000, 100_000)),
                b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n" + bytes(1000),
                b"GET /metrics HTTP/1.1\r\nAuthorization: Basic " + b"=" * rng.randrange(10_000) + b"\r\n\r\n",
                b"GET /../../etc/passwd HTTP/1.1\r\n\r\n",
                b"\r\n" * rng.randrange(1000),
            )))
            peer.recv(100)
