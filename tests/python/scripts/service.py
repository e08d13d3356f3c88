# SPDX-License-Identifier: Apache-2.0
"""The example on the page of tf.data.experimental.service."""
import tensorflow as tf

dispatcher = tf.data.experimental.service.DispatchServer()
dispatcher_address = dispatcher.target.split("://")[1]
workers = [
    tf.data.experimental.service.WorkerServer(
        tf.data.experimental.service.WorkerConfig(dispatcher_address=dispatcher_address)
    )
    for _ in range(2)
]

dataset = tf.data.Dataset.range(10)
dataset = dataset.apply(
    tf.data.experimental.service.distribute(processing_mode="parallel_epochs", service=dispatcher.target)
)
print(sorted(int(x) for x in dataset.as_numpy_iterator()))

dataset = tf.data.Dataset.range(10)
dataset = dataset.apply(
    tf.data.experimental.service.distribute(processing_mode="distributed_epoch", service=dispatcher.target)
)
print(sorted(int(x) for x in dataset.as_numpy_iterator()))

dataset = tf.data.Dataset.range(5)
dataset = dataset.map(lambda x: x * x)
dataset = dataset.apply(
    tf.data.experimental.service.distribute("parallel_epochs", service=dispatcher.target, job_name="squares")
)
dataset = dataset.map(lambda x: x + 1)
print(sorted(int(x) for x in dataset.as_numpy_iterator()))

# One program registers the dataset, another reads it.
dataset = tf.data.Dataset.range(10).batch(3)
dataset_id = tf.data.experimental.service.register_dataset(service=dispatcher.target, dataset=dataset)
dataset = tf.data.experimental.service.from_dataset_id(
    processing_mode="distributed_epoch",
    service=("grpc", dispatcher_address),
    dataset_id=dataset_id,
    element_spec=dataset.element_spec,
)
print(sorted(int(row) for batch in dataset for row in batch.numpy()))

# A cross-trainer cache: each trainer has a name.
dataset = tf.data.Dataset.range(10).repeat()
dataset = dataset.apply(
    tf.data.experimental.service.distribute(
        processing_mode=tf.data.experimental.service.ShardingPolicy.OFF,
        service=dispatcher.target,
        job_name="cached",
        cross_trainer_cache=tf.data.experimental.service.CrossTrainerCache(trainer_id="trainer 0"),
    )
)
print(len([int(x) for x in dataset.take(15)]))

try:
    tf.data.experimental.service.distribute("every_epoch", service=dispatcher.target)
except ValueError:
    print("ValueError")
