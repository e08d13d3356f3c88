# SPDX-License-Identifier: Apache-2.0
"""Files of tf.train.Examples: written, then read by a service's workers."""
import os
import tempfile

import numpy as np
import tensorflow as tf

folder = tempfile.mkdtemp()


def _bytes_feature(value):
    """Returns a bytes_list from a string / byte."""
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _float_feature(value):
    """Returns a float_list from a float / double."""
    return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))


def _int64_feature(value):
    """Returns an int64_list from a bool / enum / int / uint."""
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def serialize_example(number, name):
    feature = {
        "number": _int64_feature(number),
        "name": _bytes_feature(name),
        "half": _float_feature(number / 2),
        "image": _bytes_feature(open("examples/photos/china.jpg", "rb").read()),
        "tags": tf.train.Feature(int64_list=tf.train.Int64List(value=range(-1, number - 1))),
    }
    if number % 2:
        del feature["half"], feature["tags"]
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


for shard in range(3):
    with tf.io.TFRecordWriter(os.path.join(folder, f"train-{shard}.tfrecord")) as writer:
        for number in range(4 * shard, 4 * shard + 4):
            writer.write(serialize_example(number, b"n%d" % number))

feature_description = {
    "number": tf.io.FixedLenFeature([], tf.int64, default_value=0),
    "name": tf.io.FixedLenFeature([], tf.string, default_value=""),
    "half": tf.io.FixedLenFeature([], tf.float32, default_value=-1.0),
    "image": tf.io.FixedLenFeature([], tf.string),
    "tags": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
    "pair": tf.io.FixedLenFeature([2], tf.float32, default_value=[0.5, 1.5]),
}


def parse(serialized):
    example = tf.io.parse_single_example(serialized, feature_description)
    image = tf.io.decode_jpeg(example.pop("image"), channels=3)
    example["image"] = tf.cast(tf.image.resize(image, (8, 8)), tf.uint8)
    return example


filenames = tf.data.Dataset.list_files(os.path.join(folder, "train-*.tfrecord"), shuffle=False)
dataset = filenames.interleave(tf.data.TFRecordDataset, cycle_length=2, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
for example in dataset.take(3):
    shown = {key: example[key].numpy() for key in sorted(example) if key != "image"}
    print({key: value.tolist() if isinstance(value, np.ndarray) else str(value) for key, value in shown.items()})

dispatcher = tf.data.experimental.service.DispatchServer(
    tf.data.experimental.service.DispatcherConfig(fault_tolerant_mode=True, work_dir=os.path.join(folder, "work"))
)
workers = [
    tf.data.experimental.service.WorkerServer(
        tf.data.experimental.service.WorkerConfig(
            dispatcher_address=dispatcher.target.split("://")[1], heartbeat_interval_ms=1000
        )
    )
    for _ in range(2)
]
distributed = dataset.padded_batch(2).apply(
    tf.data.experimental.service.distribute(
        processing_mode=tf.data.experimental.service.ShardingPolicy.DYNAMIC,
        service=dispatcher.target,
        job_name="records",
        max_outstanding_requests=4,
    )
)
print({key: (tuple(spec.shape)[1:], spec.dtype.name) for key, spec in sorted(distributed.element_spec.items())})
numbers = []
for batch in distributed:
    numbers.extend(batch["number"].numpy().tolist())
    assert batch["image"].shape[1:] == (8, 8, 3)
print(sorted(numbers))

raw = tf.data.TFRecordDataset(tf.io.gfile.glob(folder + "/*.tfrecord"), num_parallel_reads=2)
print(sum(1 for _ in raw), "records;", tf.io.gfile.exists(folder))
