# SPDX-License-Identifier: Apache-2.0
"""Lines of numbers: split, filtered, in windows, batches of like length, and sums over all."""
import numpy as np
import tensorflow as tf

lines = tf.data.TextLineDataset(["examples/digits/digits.csv"])
print(lines.element_spec.dtype.name)


@tf.function
def parse(line):
    fields = tf.strings.to_number(tf.strings.split(line, ","), tf.int32)
    return {"pixels": tf.cast(fields[:-1], tf.float32) / 16.0, "label": fields[-1]}


digits = lines.map(parse)
print(digits.reduce(np.int64(0), lambda n, _: n + 1).numpy(), "digits")
counts = digits.reduce(tf.zeros([10], tf.int32), lambda n, x: n + tf.one_hot(x["label"], 10, dtype=tf.int32))
print(counts.numpy().tolist())

first = next(iter(digits.filter(lambda x: tf.equal(x["label"], 3)).batch(2)))
print(np.round(tf.reduce_mean(first["pixels"], axis=1).numpy(), 4).tolist(), first["label"].numpy().tolist())

# The ink of a digit, without its trailing blanks, in batches of similar length.
ink = digits.take(200).map(lambda x: tf.range(tf.reduce_sum(tf.cast(x["pixels"] > 0.5, tf.int32)) % 12))
batches = ink.apply(
    tf.data.experimental.bucket_by_sequence_length(
        lambda x: tf.shape(x)[0], bucket_boundaries=[4, 8], bucket_batch_sizes=[16, 8, 4], padding_values=-1
    )
)
print(sorted(tuple(batch.shape) for batch in batches)[:5])
print([batch.numpy().tolist() for batch in ink.padded_batch(2, padded_shapes=[None]).take(2)])

windows = digits.map(lambda x: x["label"]).window(3, shift=1, drop_remainder=True)
triples = windows.flat_map(lambda window: window.batch(3, drop_remainder=True))
print([triple.numpy().tolist() for triple in triples.take(3)])

inputs = digits.map(lambda x: (x["pixels"], x["label"])).enumerate().skip(2).shard(num_shards=4, index=1).take(2)
for i, (pixels, label) in inputs:
    print(i.numpy(), pixels.shape, label.numpy())

even, odd = (digits.map(lambda x: x["label"]).filter(lambda y, r=r: y % 2 == r) for r in (0, 1))
mixed = tf.data.Dataset.choose_from_datasets([even, odd], tf.data.Dataset.range(2).repeat(4))
print([int(x) for x in mixed.as_numpy_iterator()])
print(int(tf.data.Dataset.zip((even, odd)).map(lambda a, b: a * b).batch(10).take(1).get_single_element()[3]))
print(int(digits.cardinality()))
