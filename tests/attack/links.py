# SPDX-License-Identifier: Apache-2.0
"""The bytes of links, which carry elements: messages (dataplane/transfer/message.h), and their form over tcp and shm."""
import array
import fcntl
import os
import socket
import struct

from messages import TREE, mutated

HELLO, UPDATE, GOODBYE, JOIN = 1, 2, 3, 4  # MessageType
PACKET_MAGIC = 0x314D5350  # dataplane/transfer/shm/socket.cc
GREETING, SEGMENT, LEAVE, MAPPED, RING = 1, 2, 3, 4, 32  # PacketKind
LINK_METHOD = "/penstock.Transfer/Link"
SHM_VERSION = 2  # dataplane/transfer/shm/send_end.h
TO_WORKER, WORDS, CONTROL_BYTES = 8448, 256, 17408  # places in ControlMemory (dataplane/transfer/shm/channel.h, ring.h)
PAGE = 4096
F_ADD_SEALS, SHRINK, GROW = 1033, 2, 4  # linux/fcntl.h


def _table():
    found = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        found.append(byte)
    return found


_TABLE = _table()


def crc32c(data, before=0):
    crc = before ^ 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def hello(token=b"wrong", client=1, incarnation=2, iteration=1, holdings=b"\0" * 8, version=1):
    return (bytes((HELLO,)) + bytes(7) + struct.pack("<IQ", version, len(token)) + token
            + struct.pack("<QQQ", client, incarnation, iteration) + holdings)


def update(granted):
    return bytes((UPDATE,)) + bytes(7) + struct.pack("<qqBq", 0, granted, 0, 0)


def over_tcp(message, length=None):
    """Returns the message as tcp sends it, with right checksums. `length` is the one to announce, if it is not its own."""
    length = len(message) if length is None else length
    front = struct.pack("<QI", length & (1 << 64) - 1, crc32c(message[8:]))
    return front + struct.pack("<I", crc32c(message[:8], crc32c(front))) + message


def packet(kind, a=0, b=0, c=0, text=b"", magic=PACKET_MAGIC):
    """Returns a packet of shm."""
    return struct.pack("<IIQQQ", magic, kind, a, b, c) + text


def send_packet(peer, data, descriptors):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    peer.sendmsg([data], rights)


def control_segment(greeting):
    """Returns a descriptor of the memory with which a client of shm greets, with this hello in it. The caller closes it."""
    made = os.memfd_create("penstock", os.MFD_ALLOW_SEALING)
    data = bytes(CONTROL_BYTES) + greeting
    os.pwrite(made, data + bytes(-len(data) % PAGE), 0)
    fcntl.fcntl(made, F_ADD_SEALS, SHRINK | GROW)
    return made


def recorded():
    """Returns the messages that the fuzzers keep: [bytes]."""
    return [path.read_bytes() for path in sorted((TREE / "tests/fuzz/corpus/transfer_message_fuzz").iterdir())]


def some_messages(rng, kept):
    """Returns a few of the messages `kept`, most of them changed; half of the time after a hello."""
    found = [hello()] if rng.random() < 0.5 else []
    for _ in range(rng.randrange(1, 5)):
        body = rng.choice(kept)
        found.append(mutated(rng, body) if rng.random() < 0.7 else body)
    return found
