# SPDX-License-Identifier: Apache-2.0
"""Penstock, read from Python: a dispatcher, a worker and the consumer, each in its own process.

    penstock_service.py [--protocol NAME]
"""
from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile
from typing import Any

import numpy as np
import penstock as ps

import elements
import prepared
import wire
from server import Server

service = ps.data.service
ops = ps.ops


def images(setup: wire.Setup) -> ps.Dataset:
    def prepare(number: Any, name: Any) -> tuple[Any, Any]:
        image = ops.random_resized_crop(ops.decode_jpeg(ops.read_file(name)), prepared.SIDE, prepared.SIDE,
                                        *prepared.AREA)
        return number, ops.random_flip(image)

    return ps.Dataset.from_tensor_slices(prepared.files(setup, "jpg")).repeat().enumerate().map(
        prepare, ps.AUTOTUNE).batch(prepared.IMAGES, drop_remainder=True)


def buffers(setup: wire.Setup, folder: str) -> ps.Dataset:
    """Rows of a mapped file, each copied into its slot."""
    file = pathlib.Path(folder, "source.npy")
    np.save(file, elements.make_source(setup))
    return ps.NpyDataset([str(file)], ps.TensorSpec([setup.element_bytes], "uint8")).repeat()


def make_dataset(setup: wire.Setup, folder: str) -> tuple[ps.Dataset, Any]:
    """Returns the dataset and the reader of its elements."""
    setup.only("T1", "T1-0", *prepared.OF_IMAGES)
    if setup.workers != 1:
        raise ValueError(f"this peer supports one worker, not {setup.workers}")
    if setup.workload in prepared.OF_IMAGES:
        return images(setup), prepared.Images()
    return buffers(setup, folder), elements.Reader(setup)


def run_server(role: str, dispatcher: str) -> None:
    """Runs the process that server.Server starts."""
    if role == "dispatcher":
        server = service.DispatchServer()
        print(server.target.split("://")[1], flush=True)
    else:
        server = service.WorkerServer(service.WorkerConfig(dispatcher))
        print("ready", flush=True)
    sys.stdin.read()
    server.stop()


def start(setup: wire.Setup, protocol: str) -> wire.Peer:
    folder = tempfile.TemporaryDirectory()
    dataset, reader = make_dataset(setup, folder.name)
    dispatcher = Server(__file__, "dispatcher")
    worker = Server(__file__, "worker", dispatcher.said)
    iterator = iter(dataset.distribute("parallel_epochs", f"grpc://{dispatcher.said}",
                                       data_transfer_protocol=protocol))
    arrays = ps.iterator.NumpyIterator(iterator)

    def close() -> None:
        iterator.stop()
        worker.stop()
        dispatcher.stop()
        folder.cleanup()

    return wire.Peer(
        pids={"dispatcher": [dispatcher.pid], "worker": [worker.pid], "consumer": [os.getpid()]},
        about={"system": "penstock_python", "version": ps.__version__, "protocol": protocol, "compression": "none",
               "variant": "from Python", "settings": {"processing_mode": "OFF", "touch": setup.touch}},
        next=arrays.__next__, read=reader.read, shares=getattr(reader, "shares", list), close=close)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--protocol", default="shm")
    parser.add_argument("--role", choices=("dispatcher", "worker"), help=argparse.SUPPRESS)
    parser.add_argument("--dispatcher", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.role:
        run_server(args.role, args.dispatcher)
        sys.exit(0)
    sys.exit(wire.serve(lambda setup: start(setup, args.protocol)))
