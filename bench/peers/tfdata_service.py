# SPDX-License-Identifier: Apache-2.0
"""tf.data service: a dispatcher, workers and the consumer, each in its own process, without compression.

    tfdata_service.py [--variant TEXT]
"""
from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import tensorflow as tf

import elements
import prepared
import wire
from server import Server

service = tf.data.experimental.service


def images(setup: wire.Setup) -> tf.data.Dataset:
    """Prepares I1 as TensorFlow's ResNet does: only the region is decoded."""

    def prepare(number: tf.Tensor, name: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        jpeg = tf.io.read_file(name)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(jpeg), tf.zeros([1, 0, 4]), min_object_covered=0,
            aspect_ratio_range=prepared.ASPECT, area_range=prepared.AREA, use_image_if_no_bounding_boxes=True)
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        image = tf.image.decode_and_crop_jpeg(jpeg, window, channels=3)
        image = tf.image.resize(image, [prepared.SIDE, prepared.SIDE])
        return number, tf.image.random_flip_left_right(tf.cast(image, tf.uint8))

    return tf.data.Dataset.from_tensor_slices(prepared.files(setup, "jpg")).repeat().enumerate().map(
        prepare, tf.data.AUTOTUNE).batch(prepared.IMAGES, drop_remainder=True)


def volumes(setup: wire.Setup) -> tf.data.Dataset:
    def widen(record: tf.Tensor) -> tf.Tensor:
        return tf.cast(tf.reshape(tf.io.decode_raw(record, tf.uint8), prepared.VOLUME), tf.int16)

    return tf.data.TFRecordDataset(prepared.files(setup, "tfrecord")).repeat().map(widen, tf.data.AUTOTUNE)


def make_dataset(setup: wire.Setup) -> tuple[tf.data.Dataset, Any]:
    """Returns the dataset and the reader of its elements."""
    setup.only("T1", "T1-0", *prepared.OF_IMAGES, "C1")
    if setup.workload in prepared.OF_IMAGES:
        return images(setup), prepared.Images()
    if setup.workload == "C1":
        return volumes(setup), prepared.Volumes(setup)
    return buffers(setup), elements.Reader(setup)


def buffers(setup: wire.Setup) -> tf.data.Dataset:
    """Returns slices of one tensor that the worker makes. tf.data passes them on by reference."""

    def source() -> tf.Tensor:
        ours = tf.random.uniform([], maxval=2**31 - 1, dtype=tf.int64)  # differs between workers
        stamp = (tf.bitwise.left_shift(ours, tf.constant(elements.SOURCE_SHIFT, tf.int64))
                 + tf.range(setup.in_source, dtype=tf.int64))[:, tf.newaxis]
        body = tf.random.stateless_uniform([setup.in_source, setup.element_bytes // 8 - 2], [0, 0], None, None,
                                           tf.int64)
        words = tf.concat([stamp, body, stamp], axis=1)
        return tf.reshape(tf.bitcast(words, tf.uint8), [setup.in_source, setup.element_bytes])

    return tf.data.Dataset.from_tensors(0).flat_map(
        lambda _: tf.data.Dataset.from_tensor_slices(source()).repeat())


def run_server(role: str, dispatcher: str) -> None:
    """Runs the process that server.Server starts."""
    if role == "dispatcher":
        server = service.DispatchServer(service.DispatcherConfig(port=0))
        print(server.target.split("://")[1], flush=True)
    else:
        server = service.WorkerServer(service.WorkerConfig(dispatcher_address=dispatcher))
        print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)  # an orderly stop would wait for readers that have ended


def start(setup: wire.Setup, variant: str) -> wire.Peer:
    dispatcher = Server(__file__, "dispatcher")
    workers = [Server(__file__, "worker", dispatcher.said) for _ in range(setup.workers)]
    dataset, reader = make_dataset(setup)
    dataset = dataset.apply(
        service.distribute(service.ShardingPolicy.OFF, "grpc://" + dispatcher.said, compression=None))
    iterator = dataset.as_numpy_iterator()

    def close() -> None:
        for server in [*workers, dispatcher]:
            server.stop()

    malloc = {name: value for name, value in os.environ.items() if name.startswith("MALLOC_")}
    return wire.Peer(
        pids={"dispatcher": [dispatcher.pid], "worker": [worker.pid for worker in workers],
              "consumer": [os.getpid()]},
        about={"system": "tfdata_service", "version": tf.__version__, "protocol": "grpc", "compression": "none",
               "variant": variant, "settings": {"processing_mode": "OFF", "touch": setup.touch, **malloc}},
        next=iterator.next, read=reader.read, shares=getattr(reader, "shares", list), close=close)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variant", default="")
    parser.add_argument("--role", choices=("dispatcher", "worker"), help=argparse.SUPPRESS)
    parser.add_argument("--dispatcher", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.role:
        run_server(args.role, args.dispatcher)
    code = wire.serve(lambda setup: start(setup, args.variant))
    sys.stderr.flush()
    os._exit(code)  # threads of the client may still wait for servers that have ended
