# SPDX-License-Identifier: Apache-2.0
"""Attacks on the ports of tcp and the sockets of shm."""
import contextlib
import os

import links
import messages
from attacking import MIB, attack


@attack("tcp", bound_mib=96)
def huge_lengths(run):
    """Hellos that announce from 1 MiB to 2⁶⁴ bytes, with right checksums; and a hundred hellos of nearly 1 MiB at once.

    96 MiB: 64 strangers, 1 MiB each, and half as much for what is freed a moment later."""
    tail = bytes(MIB - 4096)
    while not run.over():
        with run.connection(0.2) as peer:
            length = run.rng.choice((MIB, MIB + 17, 1 << 31, 1 << 32, 1 << 40, 1 << 63, -1, -8, 7, 0))
            run.send(peer, links.over_tcp(links.hello(), length))
            peer.recv(100)
        with contextlib.ExitStack() as held:
            for peer in run.open(100):
                held.enter_context(peer)
                with contextlib.suppress(OSError):
                    peer.settimeout(0.1)
                    run.send(peer, links.over_tcp(links.hello(), MIB) + tail)


@attack("tcp")
def random_link_messages(run):
    """Recorded messages of links, whole or changed, with right lengths and checksums."""
    recorded = links.recorded()
    while not run.over():
        with run.connection(0.1) as peer:
            for body in links.some_messages(run.rng, recorded):
                run.send(peer, links.over_tcp(body))
            peer.recv(100)


@attack("shm")
def strange_packets(run):
    """Packets of any kind, with any numbers, and descriptors that are no segments: files of other sizes, pipes, sockets."""
    rng = run.rng
    while not run.over():
        with run.connection(0.1) as peer:
            for _ in range(rng.randrange(1, 6)):
                kind = rng.choice((links.GREETING, links.SEGMENT, links.LEAVE, links.MAPPED, links.RING, 16, 17, 20, 99))
                text = rng.choice((b"", links.hello(), rng.randbytes(100), bytes(16 << 10)))
                a, b, c = (rng.choice((0, 1, 2, len(text), len(links.hello()), messages.random_number(rng))) for _ in range(3))
                _send_with_descriptors(run, peer, links.packet(kind, a, b, c, text))
            peer.recv(100)


def _send_with_descriptors(run, peer, data):
    """Sends a packet with no to two descriptors."""
    with contextlib.ExitStack() as held:
        given = []
        for _ in range(run.rng.randrange(3)):
            given.append(_a_descriptor(run.rng))
            held.callback(os.close, given[-1])
        run.bytes += len(data)
        links.send_packet(peer, data, given)


def _a_descriptor(rng):
    kind = rng.randrange(5)
    if kind == 4:
        return links.control_segment(links.hello())
    if kind == 0:
        return os.open("/dev/null", os.O_RDWR)
    if kind == 1:
        ours, other = os.pipe()
        os.close(other)
        return ours
    made = os.memfd_create("penstock-strange", os.MFD_ALLOW_SEALING)
    if kind == 2:
        os.ftruncate(made, rng.choice((0, 1, 4096, 64 << 10, 1 << 40)))
    return made
