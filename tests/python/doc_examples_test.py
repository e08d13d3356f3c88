# SPDX-License-Identifier: Apache-2.0
"""The examples of tf.data service's own documentation, written for TensorFlow: only the import differs."""
import threading
import unittest

import penstock.tf as tf


class Cluster:
    def __init__(self, workers):
        self.dispatcher = tf.data.experimental.service.DispatchServer()
        address = self.dispatcher.target.split("://")[1]
        self.workers = [
            tf.data.experimental.service.WorkerServer(
                tf.data.experimental.service.WorkerConfig(dispatcher_address=address)
            )
            for _ in range(workers)
        ]
        self.target = self.dispatcher.target

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.workers:
            worker.stop()
        self.dispatcher.stop()


def read(dataset):
    return list(dataset.as_numpy_iterator())


class DocExamples(unittest.TestCase):
    def test_x1_parallel_epochs(self):
        with Cluster(2) as cluster:
            dataset = tf.data.Dataset.range(10)
            dataset = dataset.apply(
                tf.data.experimental.service.distribute(
                    processing_mode=tf.data.experimental.service.ShardingPolicy.OFF, service=cluster.target
                )
            )
            self.assertEqual(sorted(read(dataset)), sorted(list(range(10)) * 2))

    def test_x2_distributed_epoch(self):
        with Cluster(2) as cluster:
            dataset = tf.data.Dataset.range(10)
            dataset = dataset.apply(
                tf.data.experimental.service.distribute(
                    processing_mode=tf.data.experimental.service.ShardingPolicy.DYNAMIC, service=cluster.target
                )
            )
            self.assertEqual(sorted(read(dataset)), list(range(10)))

    def test_x3_before_and_after(self):
        for workers, expected in ((2, [1, 1, 2, 2, 5, 5, 10, 10, 17, 17]), (1, [1, 2, 5, 10, 17])):
            with Cluster(workers) as cluster:
                dataset = tf.data.Dataset.range(5)
                dataset = dataset.map(lambda x: x * x)
                dataset = dataset.apply(
                    tf.data.experimental.service.distribute(processing_mode="parallel_epochs", service=cluster.target)
                )
                dataset = dataset.map(lambda x: x + 1)
                self.assertEqual(sorted(read(dataset)), expected)

    def test_x4_shared_job(self):
        with Cluster(1) as cluster:

            def make():
                return tf.data.Dataset.range(5).apply(
                    tf.data.experimental.service.distribute(
                        "parallel_epochs", cluster.target, job_name="my_job_name"
                    )
                )

            theirs = []

            def other():
                dataset = make()
                for _ in range(3):
                    theirs.append(read(dataset))

            reader = threading.Thread(target=other)
            reader.start()
            dataset = make()
            mine = [read(dataset) for _ in range(3)]
            reader.join()
            for a, b in zip(mine, theirs):
                self.assertEqual(sorted(a + b), [0, 1, 2, 3, 4])

    def test_x5_repeat_after(self):
        with Cluster(1) as cluster:
            dataset = tf.data.Dataset.range(5).apply(
                tf.data.experimental.service.distribute("parallel_epochs", cluster.target, job_name="my_job_name")
            )
            self.assertEqual(read(dataset.repeat(3)), list(range(5)) * 3)

    def test_x6_a_name_used_again(self):
        with Cluster(1) as cluster:

            def make():
                return tf.data.Dataset.range(5).apply(
                    tf.data.experimental.service.distribute("parallel_epochs", cluster.target, job_name="job")
                )

            self.assertEqual(read(make()), [0, 1, 2, 3, 4])
            self.assertEqual(read(make()), [])

    def test_x7_register_then_read(self):
        with Cluster(2) as cluster:
            dataset = tf.data.Dataset.range(10)
            dataset_id = tf.data.experimental.service.register_dataset(cluster.target, dataset)
            for spec in (dataset.element_spec, None):
                again = tf.data.experimental.service.from_dataset_id(
                    processing_mode="parallel_epochs",
                    service=cluster.target,
                    dataset_id=dataset_id,
                    element_spec=spec,
                )
                self.assertEqual(again.element_spec, tf.TensorSpec([], tf.int64))
                self.assertEqual(sorted(read(again)), sorted(list(range(10)) * 2))

    def test_x8_equal_definitions_have_one_id(self):
        with Cluster(1) as cluster:

            def register(stop):
                return tf.data.experimental.service.register_dataset(
                    cluster.target, tf.data.Dataset.range(stop).map(lambda x: x * 3)
                )

            self.assertEqual(register(10), register(10))
            self.assertNotEqual(register(10), register(11))

    def test_x9_coordinated_reads(self):
        with Cluster(2) as cluster:
            num_consumers = 2

            def make(consumer_index):
                # The lengths 1 to 8 over and over, in batches of 4 of one bucket, in windows of a batch per consumer.
                dataset = tf.data.Dataset.range(1, 9).repeat()
                dataset = dataset.map(lambda n: tf.range(0, n))
                dataset = dataset.bucket_by_sequence_length(
                    element_length_func=lambda x: tf.shape(x)[0],
                    bucket_boundaries=[3, 5],
                    bucket_batch_sizes=[4, 4, 4],
                    pad_to_bucket_boundary=False,
                )
                dataset = dataset.group_by_window(
                    key_func=lambda x: tf.where(tf.shape(x)[1] < 3, 0, tf.where(tf.shape(x)[1] < 5, 1, 2)),
                    reduce_func=lambda key, window: tf.data.Dataset.from_tensors(window),
                    window_size=num_consumers,
                )
                dataset = dataset.flat_map(lambda window: window)
                return dataset.apply(
                    tf.data.experimental.service.distribute(
                        "parallel_epochs",
                        cluster.target,
                        job_name="coordinated",
                        consumer_index=consumer_index,
                        num_consumers=num_consumers,
                    )
                )

            steps = 12
            widths = [None, None]

            def consume(index):
                iterator = iter(make(index))
                # A window's result is ragged if its batches have different widths.
                widths[index] = [max(map(len, next(iterator).to_list())) for _ in range(steps)]

            other = threading.Thread(target=consume, args=(1,))
            other.start()
            consume(0)
            other.join()

            def bucket(width):
                return (width >= 3) + (width >= 5)

            self.assertEqual([bucket(w) for w in widths[0]], [bucket(w) for w in widths[1]])
            self.assertEqual({bucket(w) for w in widths[0]}, {0, 1, 2})


TWO = ["GPU:0", "GPU:1"]
ON_HOST = tf.distribute.InputOptions(experimental_fetch_to_device=False)  # no test machine has two GPUs


class Distributed(unittest.TestCase):
    """The examples of tf.distribute's documentation."""

    def x10(self):
        strategy = tf.distribute.MirroredStrategy(TWO)
        dataset = tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(4).batch(4)
        dist_dataset = strategy.experimental_distribute_dataset(dataset, ON_HOST)

        @tf.function
        def train_step(inputs):
            features, labels = inputs
            return labels - 0.3 * features

        return [strategy.run(train_step, args=(x,)) for x in dist_dataset]

    def test_x10_two_replicas_loop(self):
        (loss,) = self.x10()
        self.assertEqual(len(loss.values), 2)
        for value in loss.values:
            self.assertEqual((value.shape, value.dtype.name), ((2, 1), "float32"))
            self.assertTrue((abs(value - 0.7) < 1e-6).all())

    def test_x11_epochs_and_steps(self):
        for devices, expected in ((TWO, "0.2000"), (["CPU:0"], "0.1000")):
            strategy = tf.distribute.MirroredStrategy(devices)
            dataset = tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(50).batch(4)
            dist_dataset = strategy.experimental_distribute_dataset(dataset, ON_HOST)

            @tf.function
            def distributed_train_step(strategy, dataset_inputs):
                losses = strategy.run(lambda inputs: 0.1, args=(dataset_inputs,))
                return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

            printed = []
            for epoch in range(2):
                total_loss, num_batches = 0.0, 0
                dist_iterator = iter(dist_dataset)
                for _ in range(3):
                    total_loss += distributed_train_step(strategy, next(dist_iterator))
                    num_batches += 1
                printed.append("Epoch {}, Loss: {:.4f}".format(epoch + 1, total_loss / num_batches))
            self.assertEqual(printed, [f"Epoch {epoch}, Loss: {expected}" for epoch in (1, 2)])

    def test_x12_element_spec_as_a_check(self):
        strategy = tf.distribute.MirroredStrategy(TWO)
        dataset = tf.data.Dataset.from_tensors(([2.0])).repeat(100).batch(4)
        dist_dataset = strategy.experimental_distribute_dataset(dataset, ON_HOST)

        @tf.function(input_signature=[dist_dataset.element_spec])
        def train_step(per_replica_inputs):
            return strategy.run(lambda inputs: inputs * inputs, args=(per_replica_inputs,))

        squares = train_step(next(iter(dist_dataset)))
        self.assertEqual([value.tolist() for value in squares.values], [[[4.0], [4.0]]] * 2)
        with self.assertRaisesRegex(TypeError, "argument 0 of train_step"):
            train_step(strategy.experimental_distribute_values_from_function(lambda _: tf.data))
        with self.assertRaisesRegex(TypeError, "1 argument"):
            train_step()

    def test_x13_next(self):
        dataset = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4]).repeat().batch(4)

        def first(devices):
            strategy = tf.distribute.MirroredStrategy(devices)
            return next(iter(strategy.experimental_distribute_dataset(dataset, ON_HOST)))

        both = first(TWO)
        self.assertEqual([value.numpy().tolist() for value in both.values], [[1, 2], [3, 4]])
        self.assertEqual({(value.shape, value.dtype) for value in both.values}, {((2,), tf.int32)})
        self.assertEqual(first(["CPU:0"]).numpy().tolist(), [1, 2, 3, 4])

    def element_spec(self, devices):
        strategy = tf.distribute.MirroredStrategy(devices)
        dataset = tf.data.Dataset.from_tensors(([1.0], [2])).repeat(100).batch(16)
        return strategy.experimental_distribute_dataset(dataset, ON_HOST).element_spec

    def test_x14_element_spec_of_one_replica(self):
        self.assertEqual(
            self.element_spec(["CPU:0"]),
            (tf.TensorSpec((None, 1), tf.float32), tf.TensorSpec((None, 1), tf.int32)),
        )

    def test_x15_element_spec_of_two_replicas(self):
        floats, ints = self.element_spec(TWO)
        self.assertEqual(floats.value_specs, (tf.TensorSpec((None, 1), tf.float32),) * 2)
        self.assertEqual(ints.value_specs, (tf.TensorSpec((None, 1), tf.int32),) * 2)
        spec = repr(tf.TensorSpec((None, 1), tf.int32))
        self.assertEqual(repr(ints), f"PerReplicaSpec({spec}, {spec})")

    def test_x16_printed_form(self):
        (loss,) = self.x10()
        value = repr(loss.values[0])
        self.assertEqual(str(loss), f"PerReplica:{{\n  0: {value},\n  1: {value}\n}}")


class Paths(unittest.TestCase):
    def test_tensorflows_paths_are_penstocks_objects(self):
        import penstock as ps

        table = {
            "data.Dataset": ps.Dataset,
            "data.Options": ps.Options,
            "data.TFRecordDataset": ps.TFRecordDataset,
            "data.TextLineDataset": ps.TextLineDataset,
            "data.FixedLengthRecordDataset": ps.FixedLengthRecordDataset,
            "data.AUTOTUNE": ps.AUTOTUNE,
            "data.INFINITE_CARDINALITY": ps.INFINITE_CARDINALITY,
            "data.UNKNOWN_CARDINALITY": ps.UNKNOWN_CARDINALITY,
            "data.experimental.AUTOTUNE": ps.AUTOTUNE,
            "data.experimental.service": ps.data.service,
            "data.experimental.service.distribute": ps.data.service.distribute,
            "data.experimental.service.register_dataset": ps.data.service.register_dataset,
            "data.experimental.service.from_dataset_id": ps.data.service.from_dataset_id,
            "data.experimental.service.DispatchServer": ps.data.service.DispatchServer,
            "data.experimental.service.WorkerServer": ps.data.service.WorkerServer,
            "data.experimental.service.DispatcherConfig": ps.data.service.DispatcherConfig,
            "data.experimental.service.WorkerConfig": ps.data.service.WorkerConfig,
            "data.experimental.service.ShardingPolicy": ps.data.service.ShardingPolicy,
            "data.experimental.service.CrossTrainerCache": ps.data.service.CrossTrainerCache,
            "data.experimental.AutoShardPolicy": ps.distribute.AutoShardPolicy,
            "distribute.MirroredStrategy": ps.distribute.MirroredStrategy,
            "distribute.MultiWorkerMirroredStrategy": ps.distribute.MultiWorkerMirroredStrategy,
            "distribute.Strategy": ps.distribute.Strategy,
            "distribute.InputContext": ps.distribute.InputContext,
            "distribute.InputOptions": ps.distribute.InputOptions,
            "distribute.InputReplicationMode": ps.distribute.InputReplicationMode,
            "distribute.DistributedValues": ps.distribute.DistributedValues,
            "distribute.DistributedDataset": ps.distribute.DistributedDataset,
            "distribute.DistributedIterator": ps.distribute.DistributedIterator,
            "distribute.ReduceOp": ps.distribute.ReduceOp,
            "distribute.get_replica_context": ps.distribute.get_replica_context,
            "distribute.experimental.ValueContext": ps.distribute.ValueContext,
            "TensorSpec": ps.TensorSpec,
            "RaggedTensorSpec": ps.RaggedTensorSpec,
            "SparseTensorSpec": ps.SparseTensorSpec,
            "Tensor": ps.Tensor,
            "RaggedTensor": ps.RaggedTensor,
            "errors": ps.errors,
            "errors.InvalidArgumentError": ps.errors.InvalidArgumentError,
            "errors.OutOfRangeError": ps.errors.OutOfRangeError,
            "errors.OpError": ps.errors.Error,
            "DType": ps.DType,
            "int64": ps.int64,
            "string": ps.string,
            "as_dtype": ps.as_dtype,
        }
        for path, expected in table.items():
            found = tf
            for name in path.split("."):
                found = getattr(found, name)
            self.assertIs(found, expected, path)
        from penstock.tf.data.experimental import service

        self.assertIs(service, ps.data.service)

    def test_eager_tensors_say_numpy(self):
        dataset = tf.data.Dataset.from_tensor_slices([1, 2, 3])
        self.assertEqual([element.numpy() for element in dataset], [1, 2, 3])
        self.assertEqual([element.dtype for element in dataset], [tf.int32] * 3)


if __name__ == "__main__":
    unittest.main()
