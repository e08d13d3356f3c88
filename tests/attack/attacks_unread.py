# SPDX-License-Identifier: Apache-2.0
"""Clients that ask and never read: their windows have 0 bytes, and nobody takes bytes from their sockets."""
import contextlib
import socket
import struct

import http2
import links
import messages
from attacking import MIB, attack
from ports import PREFACE
from stranger import SERVICE, SPEC_OF_INT64

SIZE = 8 * MIB  # of the definition that the clients ask for
CALLS = 100  # of each connection
CONNECTIONS = 8
NO_WINDOW = PREFACE + http2.frame(http2.SETTINGS, payload=struct.pack(">HI", 4, 0))


# At the dispatcher: 4,096 calls, and for each the 64 KiB of a small answer. No answer has a copy of the definition.
@attack("grpc", "pages", bound_mib=256)
def unread_answers(run):
    """Calls for a definition of 8 MiB, for statuses, of unknown methods, and sessions; requests for pages; all unread."""
    requests = _requests(run)
    with contextlib.ExitStack() as held:
        while not run.over():
            peers = [held.enter_context(peer) for peer in run.open(CONNECTIONS)]
            for i, peer in enumerate(peers):
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                with contextlib.suppress(OSError):
                    run.send(peer, requests[i % len(requests)])
            run.sleep(1)


def _requests(run):
    """Returns what connections send: many requests each."""
    if run.port.kind == "pages":
        return [b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * CALLS]
    if not run.at_dispatcher:
        hello = http2.message(links.hello(run.rng.randbytes(16)))
        return [_calls(run, "/nothing", b""), _calls(run, links.LINK_METHOD, hello)]
    dataset = _register(run, SIZE)
    asked = _calls(run, SERVICE + "GetDataset", http2.message(messages.field(1, messages.BYTES, dataset)))
    return [asked, asked, asked, _calls(run, SERVICE + "GetStatus", http2.message(b"")), _calls(run, SERVICE + "Nothing", b""),
            _calls(run, SERVICE + "ClientSession", http2.message(b"\xff"))]


def _calls(run, path, body):
    head = http2.call_headers(path, (("authorization", f"Bearer {run.token}"),) if run.token else ())
    return NO_WINDOW + b"".join(
        http2.frame(http2.HEADERS, http2.END_HEADERS, 2 * i + 1, head) + http2.frame(http2.DATA, http2.END_STREAM, 2 * i + 1, body)
        for i in range(CALLS))


def _register(run, size):
    """Registers a definition of that size; returns the dataset's id."""
    number = run.rng.getrandbits(62)
    request = messages.nested(1, messages.fixed64(1, number), messages.field(2, messages.VARINT, 1))
    spec = messages.nested(5, messages.fixed64(1, number), messages.fixed64(2, SPEC_OF_INT64))
    with run.port.connect(20) as peer:
        body = request + messages.field(4, messages.BYTES, bytes(size)) + spec
        answer = http2.Connection(peer, run.token).call(SERVICE + "GetOrRegisterDataset", body, 20)
    return messages.parse(answer)[1][0] if answer else b""
