# SPDX-License-Identifier: Apache-2.0
"""Every socket on which a process listens, as the kernel lists it, and the protocol that is spoken there."""
import contextlib
import ipaddress
import os
import pathlib
import re
import socket
import struct
from typing import NamedTuple

from fleet import Failed

PATIENCE = 5  # seconds for an answer to a probe
LOOPBACK, STRANGER = "127.0.0.1", "127.0.0.2"
TCP_LISTEN = "0A"
UNIX_ACCEPTS = 0x10000  # flag in /proc/net/unix
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CLOSED = 21  # dataplane/transfer/message.h
# The protocols whose listeners are known here. Each has attacks (attacks.py); a port of no known kind fails the run.
KINDS = ("grpc", "pages", "tcp", "ucx", "shm")


class Port(NamedTuple):
    owner: str  # name of the process
    kind: str  # one of KINDS
    address: str  # host:port, or the name of an abstract socket after "@"

    def connect(self, patience=PATIENCE):
        return connect(self.address, patience)


def connect(address, patience=PATIENCE):
    """Returns a connected socket whose calls wait for at most `patience` seconds. Over IPv4 it has an address of its own: ports
    mostly keep out the honest clients of an attacker's address (docs/security.md)."""
    if address.startswith("@"):
        made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        made.settimeout(patience)
        made.connect("\0" + address[1:])
        return made
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), patience, (STRANGER, 0) if host == LOOPBACK else None)


def sockets_of(pid):
    """Returns the inode numbers of the sockets of a process."""
    found = set()
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if inode := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(entry)):
                found.add(inode[1])
    return found


def _host(text):
    """Returns an address of /proc/net/tcp or tcp6 as a host to connect to. The kernel prints words of four bytes."""
    words = [struct.pack("=I", int(text[at : at + 8], 16)) for at in range(0, len(text), 8)]
    host = ipaddress.ip_address(b"".join(words))
    if host.version == 6 and host.ipv4_mapped:
        host = host.ipv4_mapped
    if host.is_unspecified:
        return "127.0.0.1" if host.version == 4 else "::1"
    return str(host)


def listening(pid):
    """Returns the addresses on which the process listens: [str], in the notation of Port.address."""
    inodes, found = sockets_of(pid), []
    for table in ("tcp", "tcp6"):
        path = pathlib.Path(f"/proc/{pid}/net/{table}")
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            fields = line.split()
            if fields[3] == TCP_LISTEN and fields[9] in inodes:
                host, port = fields[1].split(":")
                found.append(f"{_host(host)}:{int(port, 16)}")
    for line in pathlib.Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]:
        fields = line.split(maxsplit=7)
        if int(fields[3], 16) & UNIX_ACCEPTS and fields[6] in inodes:
            found.append(fields[7])
    return found


def answer_to(address, words):
    """Returns the first bytes that a peer sends to these words; empty if it closes or says nothing."""
    with connect(address, 1) as peer, contextlib.suppress(OSError):
        peer.sendall(words)
        return peer.recv(4096)
    return b""


def closes_on_garbage(address):
    with connect(address) as peer:
        try:
            peer.sendall(bytes(64))
            return peer.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False


def kind_of(address):
    """Returns the protocol that the listener there speaks, found by what it answers; None if it is none of KINDS."""
    if address.startswith("@penstock-"):
        return "shm"
    if address.startswith(("@", "/")):
        return None
    if answer_to(address, PREFACE + bytes(3) + b"\x04" + bytes(5))[3:4] == b"\x04":  # its settings
        return "grpc"
    if answer_to(address, b"GET /metrics HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 "):
        return "pages"
    answer = answer_to(address, bytes(64))
    if len(answer) > 16 and answer[16] == CLOSED:
        return "tcp"
    # UCX closes a connection that does not begin with its number, without an answer.
    return "ucx" if not answer and closes_on_garbage(address) else None


def ports_of(name, pid):
    """Returns the ports of that process: [Port]. Failed if one of them is of no known kind, and so has no attack."""
    found = []
    for address in listening(pid):
        if (kind := kind_of(address)) is None:
            raise Failed(f"{name} listens at {address}, where no known protocol answers; add its kind to KINDS in "
                         "tests/attack/ports.py, and its attacks to attacks.py")
        found.append(Port(name, kind, address))
    return found
