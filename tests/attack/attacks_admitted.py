# SPDX-License-Identifier: Apache-2.0
"""Clients with the right token of their own job, which send a worker what no client sends."""
import contextlib
import mmap
import os
import struct
import time

import http2
import links
import messages
from attacking import attack
from attacks_definitions import attr_int, chain
from ports import connect
from stranger import register_and_read

ENDLESS = chain(1, b"Repeat", attr_int(b"count", 1 << 62))


@attack("grpc", owner="dispatcher", bound_mib=128)
def admitted_clients(run):
    """Recorded messages, whole or changed, after a right hello over tcp, grpc and shm. 128 MiB: the job's elements, 64 MiB."""
    recorded = links.recorded()

    def use(of, offers, hello):
        for _ in range(20):
            protocol = of.rng.choice([name for name in LINKS if name in offers])
            with contextlib.suppress(OSError):
                LINKS[protocol](of, offers[protocol], hello, links.some_messages(of.rng, recorded)[1:])
            of.connections += 1
        return True

    while not run.over():
        register_and_read(run, ENDLESS, use)


def over_tcp(run, address, hello, bodies):
    with connect(address, 0.1) as peer:
        run.send(peer, links.over_tcp(hello) + links.over_tcp(links.update(run.rng.choice((0, 10, 1 << 62)))))
        for body in bodies:
            run.send(peer, links.over_tcp(body))
        run.received += len(peer.recv(1 << 16))


def over_grpc(run, address, hello, bodies):
    with connect(address, 1) as peer:
        link = http2.Connection(peer)
        stream = link.open(links.LINK_METHOD)
        for body in (hello, links.update(run.rng.choice((0, 10, 1 << 62))), *bodies):
            run.bytes += len(body)
            link.send(stream, http2.message(body))
        link.read_until(time.monotonic() + 0.05)
        run.received += len(link.answers[stream])


def over_shm(run, address, hello, bodies):
    """Sends random words through the ring, and packets with descriptors."""
    rng = run.rng
    made = links.control_segment(hello)
    try:
        with connect("@penstock-" + address, 0.05) as peer, mmap.mmap(made, os.fstat(made).st_size) as control:
            links.send_packet(peer, links.packet(links.GREETING, links.SHM_VERSION, len(hello), rng.randrange(2)), [made])
            for n in range(rng.randrange(1, 20)):
                word = rng.choice((8, 9, 10, 11, 12, rng.randrange(16))) << 60 | rng.getrandbits(rng.choice((1, 8, 30, 60)))
                at = links.TO_WORKER + links.WORDS + 8 * n
                control[at : at + 8] = struct.pack("<Q", word)
                written = n + 1 if rng.random() < 0.9 else messages.random_number(rng)
                control[links.TO_WORKER : links.TO_WORKER + 8] = struct.pack("<Q", written)
                links.send_packet(peer, links.packet(links.RING), [])
                if rng.random() < 0.2:
                    a, b, c = (rng.choice((0, 1, 4096, messages.random_number(rng))) for _ in range(3))
                    kind = rng.choice((links.SEGMENT, links.MAPPED))
                    links.send_packet(peer, links.packet(kind, a, b, c), [made] * rng.randrange(3))
            run.bytes += 8 * n
            run.received += len(peer.recv(1 << 16))
    finally:
        os.close(made)


LINKS = {"tcp": over_tcp, "grpc": over_grpc, "shm": over_shm}
