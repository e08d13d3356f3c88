# SPDX-License-Identifier: Apache-2.0
"""What attacks share: a Run, which is one attack on one port, and ATTACKS, which lists the attacks.

Each attack is a function of a Run. It draws its inputs from the run's seed until the run's time is over. A peer that refuses or
closes is the expected answer, so errors of sockets are no failure (Run.connection).
"""
import contextlib
import random
import socket
import struct
import time
from typing import Callable, NamedTuple

import http2
import links
import messages
from ports import PREFACE
from principals import own_token

MIB = 1 << 20


class Run:
    """One attack on one port: where, from which seed, until when, and the inputs of the last connections."""

    def __init__(self, port, seed, seconds, folder):
        self.port, self.rng, self.folder = port, random.Random(seed), folder
        self.until = time.monotonic() + seconds
        self.connections = self.bytes = self.received = 0
        self.token = own_token()
        self._schema = self._last = None
        self._kept = 0

    @property
    def schema(self):
        self._schema = self._schema or messages.Schema(self.folder)
        return self._schema

    def over(self):
        return time.monotonic() >= self.until

    @property
    def at_dispatcher(self):
        return self.port.owner.startswith("dispatcher")

    def sleep(self, seconds):
        time.sleep(max(0, min(seconds, self.until - time.monotonic())))

    @contextlib.contextmanager
    def connection(self, patience=2):
        """A new connection; the end of the `with` block closes it. Errors of sockets end the block, and nothing else."""
        with contextlib.suppress(OSError), self._connected(patience) as peer:
            yield peer

    def _connected(self, patience):
        try:
            peer = self.port.connect(patience)
        except OSError:
            self.sleep(0.05)  # another try at once would only burn our own time
            return socket.socket()  # not connected: the first use of it is an error
        self.connections += 1
        return peer

    def open(self, count):
        """Returns up to `count` new connections, which the caller closes."""
        found = []
        for _ in range(count):
            with contextlib.suppress(OSError):
                found.append(self.port.connect(1))
                self.connections += 1
        return found

    def send(self, peer, data):
        """Sends the data. Keeps it in the run's folder, where the inputs of the last 64 connections stay."""
        kept = self.folder / f"input-{self.connections % 64:02}"
        with open(kept, "wb" if self._is_first(kept) else "ab") as out:
            out.write(data[:MIB])
        self.bytes += len(data)
        peer.sendall(data)

    def keep(self, body):
        """Keeps a message in the run's folder, where the last 64 stay."""
        self._kept += 1
        (self.folder / f"message-{self._kept % 64:02}").write_bytes(body)

    def _is_first(self, kept):
        before, self._last = self._last, (kept, self.connections)
        return before != self._last


class Attack(NamedTuple):
    name: str
    run: Callable
    kinds: tuple  # of ports
    owner: str  # attack only the ports of servers whose names begin so
    bound_mib: int  # by which the resident memory of a server may grow meanwhile

    def ports(self, among):
        """Returns the ports that it attacks."""
        return [port for port in among if port.kind in self.kinds and port.owner.startswith(self.owner)]


ATTACKS = {}


def attack(*kinds, owner="", bound_mib=64):
    """Lists a function as an attack on ports of these kinds. 64 MiB: 64 strangers, 1 MiB each (docs/security.md)."""

    def listed(function):
        ATTACKS[function.__name__] = Attack(function.__name__, function, kinds, owner, bound_mib)
        return function

    return listed


def attacks_of(kind):
    return [one for one in ATTACKS.values() if kind in one.kinds]


def beginning(rng, kind):
    """Returns the bytes with which an honest client of that kind of port begins."""
    if kind == "grpc":
        call = http2.call_headers("/penstock.control.wire.Dispatcher/GetVersion")
        return PREFACE + http2.frame(http2.SETTINGS) + http2.frame(http2.HEADERS, http2.END_HEADERS, 1, call)
    if kind == "pages":
        return b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nUser-Agent: test\r\n\r\n"
    if kind == "tcp":
        return links.over_tcp(links.hello())
    if kind == "shm":
        return links.packet(links.GREETING, links.SHM_VERSION, len(links.hello()))
    # UCX's number, then a request for a connection (src/uct/tcp/tcp.h) of random bytes.
    return struct.pack("<QB", 0xCAFEBABE12345678, rng.choice((1, 2, 4, 8, 16, 32))) + rng.randbytes(rng.choice((8, 40, 64)))
