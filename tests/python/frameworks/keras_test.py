# SPDX-License-Identifier: Apache-2.0
"""ps.keras under Model.fit, on the backend that KERAS_BACKEND names: epochs, weights, positions, two processes."""
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"  # read when jax is imported

import keras  # noqa: E402
import numpy as np  # noqa: E402
import penstock as ps  # noqa: E402
from cluster import Cluster  # noqa: E402

BACKEND = keras.backend.backend()
ROWS = 64
# Keras warns at the end of each epoch of unknown length that there is no more data.
warnings.filterwarnings("ignore", message="Your input ran out of data")


def pairs(rows=ROWS, batch=8):
    """x [batch, 1], whose value is the record's number, and y = 2 x + 1."""

    def pair(n):
        x = n.astype(ps.float32)
        return x.reshape(1), x * 2.0 + 1.0

    return ps.Dataset.range(rows).map(pair).batch(batch)


class Seen(keras.Model):
    """A linear model that records the data it is trained on."""

    def __init__(self):
        super().__init__()
        self.line = keras.layers.Dense(1)
        self.records = []
        self.weights_seen = []
        self.compile(optimizer=keras.optimizers.SGD(1e-5), loss="mse", run_eagerly=True)

    def call(self, x):
        return self.line(x)

    def train_step(self, *state_and_data):
        x, _, weights = keras.utils.unpack_x_y_sample_weight(state_and_data[-1])
        self.records.append(keras.ops.convert_to_numpy(x).astype(int).ravel().tolist())
        if weights is not None:
            self.weights_seen += keras.ops.convert_to_numpy(weights).ravel().tolist()
        return super().train_step(*state_and_data)

    def all_records(self):
        return sorted(record for batch in self.records for record in batch)


def number(epochs):
    return sorted(list(range(ROWS)) * epochs)


class Fit(unittest.TestCase):
    def test_each_epoch_is_a_pass(self):
        model = Seen()
        history = model.fit(ps.keras.dataset(pairs()), epochs=3, verbose=0)
        self.assertEqual(model.all_records(), number(epochs=3))
        self.assertEqual([len(batch) for batch in model.records], [8] * 24)
        self.assertEqual(history.params["steps"], 8)

    def test_a_line_is_learned_as_from_arrays(self):
        x = np.arange(ROWS, dtype=np.float32)[:, None] / ROWS
        losses = []
        for data in (
            {"x": ps.keras.dataset(ps.Dataset.from_tensor_slices((x, 2 * x + 1)).batch(16))},
            {"x": x, "y": 2 * x + 1, "batch_size": 16, "shuffle": False},
        ):
            keras.utils.set_random_seed(1)
            model = keras.Sequential([keras.layers.Dense(1)])
            model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
            losses.append(model.fit(**data, epochs=20, verbose=0).history["loss"])
        np.testing.assert_allclose(*losses, rtol=1e-4)
        self.assertLess(losses[0][-1], losses[0][0] / 10)

    def test_epochs_of_steps_go_on_in_one_pass(self):
        model = Seen()
        model.fit(ps.keras.dataset(pairs().repeat(2)), epochs=4, steps_per_epoch=4, verbose=0)
        self.assertEqual(model.all_records(), number(epochs=2))

    def test_epochs_of_unknown_length_are_whole(self):
        model = Seen()
        model.fit(ps.keras.dataset(pairs().filter(lambda x, y: y[0] > 0)), epochs=3, verbose=0)
        self.assertEqual(model.all_records(), number(epochs=3))

    def test_a_pass_of_one_batch_is_shuffled_differently_in_each_epoch(self):
        model = Seen()
        ds = ps.Dataset.range(ROWS).shuffle(ROWS).map(lambda n: (n.astype(ps.float32).reshape(1),) * 2).batch(ROWS)
        model.fit(ps.keras.dataset(ds), epochs=3, verbose=0)
        self.assertEqual(model.all_records(), number(epochs=3))
        self.assertEqual(len(set(map(tuple, model.records))), 3)

    def test_sample_weights_are_the_third_member(self):
        model = Seen()
        model.fit(ps.keras.dataset(pairs().map(lambda x, y: (x, y, x.reshape(-1) * 0.0 + 0.5))), verbose=0)
        self.assertEqual(model.weights_seen, [0.5] * ROWS)

    def test_inputs_by_name_and_validation(self):
        inputs = {name: keras.Input((1,), name=name) for name in "ab"}
        model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Concatenate()(list(inputs.values()))))
        model.compile(optimizer="sgd", loss="mse")
        data = ps.keras.dataset(pairs().map(lambda x, y: ({"a": x * 0.01, "b": x * 0.0}, y * 0.01)))
        history = model.fit(data, epochs=2, validation_data=data, verbose=0).history
        self.assertEqual([len(history[name]) for name in ("loss", "val_loss")], [2, 2])
        self.assertAlmostEqual(model.evaluate(data, verbose=0), history["val_loss"][-1], places=4)
        self.assertEqual(model.predict(data, verbose=0).shape, (ROWS, 1))

    def test_batches_lie_where_elements_lie(self):
        adapter = ps.keras.dataset(pairs())
        addresses = []
        convert = adapter._loader._leaves
        adapter._loader._leaves = lambda leaves: (
            addresses.append([leaf.numpy().ctypes.data for leaf in leaves]) or convert(leaves)
        )
        batches = adapter.get_torch_dataloader() if BACKEND == "torch" else adapter.get_jax_iterator()
        pointer = (lambda t: t.data_ptr()) if BACKEND == "torch" else (lambda a: a.unsafe_buffer_pointer())
        for batch in batches:
            self.assertEqual([pointer(member) for member in batch], addresses[-1])

    def test_slots_come_back_while_keras_reads(self):
        adapter = ps.keras.dataset(pairs(2000, 4))
        addresses = set()
        convert = adapter._loader._leaves
        adapter._loader._leaves = lambda leaves: addresses.add(leaves[0].numpy().ctypes.data) or convert(leaves)
        Seen().fit(adapter, verbose=0)
        self.assertLess(len(addresses), 200)  # of 500

    def test_mistakes_raise_errors(self):
        with self.assertRaisesRegex(TypeError, "Dataset"):
            ps.keras.dataset([1, 2])
        with self.assertRaisesRegex(TypeError, r"element\[1\]: Keras has no strings|element\[1\]: JAX has no strings"):
            ps.keras.dataset(ps.Dataset.range(3).map(lambda x: (x, ps.ops.as_string(x))))

    def test_no_batch_at_all_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "the pass has no batch"):
            Seen().fit(ps.keras.dataset(pairs().filter(lambda x, y: y[0] < 0)), verbose=0)

    @unittest.skipUnless(BACKEND == "jax", "devices of one process are JAX's")
    def test_data_parallel_over_four_devices(self):
        import jax

        model = Seen()
        keras.distribution.set_distribution(keras.distribution.DataParallel(devices=jax.local_devices()))
        try:
            model.fit(ps.keras.dataset(pairs()), epochs=2, verbose=0)
        finally:
            keras.distribution.set_distribution(None)
        self.assertEqual(model.all_records(), number(epochs=2))


# Trains on its part of the job, and prints the records of each step; waits after the first step for a line of input.
TRAINER = """
import json, sys
sys.path.insert(0, sys.argv[1])
import keras, keras_test
import penstock as ps

class Wait(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 0 and not self.model.told:
            print("reads", flush=True)
            self.model.told = sys.stdin.readline()

service, job_name, epochs = sys.argv[2], sys.argv[3], int(sys.argv[4])
model = keras_test.Seen()
model.told = ""
ds = keras_test.pairs().distribute("distributed_epoch", service, job_name=job_name, max_outstanding_requests=1)
model.fit(ps.keras.dataset(ds), epochs=epochs, callbacks=[Wait()], verbose=0)
print(json.dumps(model.records), flush=True)
"""


class Jobs(unittest.TestCase):
    def train(self, service, job_name, epochs):
        """Returns the records that each of two processes was trained on. Neither goes on before both have some."""
        here = os.path.dirname(os.path.abspath(__file__))
        with contextlib.ExitStack() as stack:
            trainers = [
                stack.enter_context(
                    subprocess.Popen(
                        [sys.executable, "-c", TRAINER, here, service, job_name, str(epochs)],
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                    )
                )
                for _ in range(2)
            ]
            for trainer in trainers:
                self.assertEqual(trainer.stdout.readline(), "reads\n")
            for trainer in trainers:
                trainer.stdin.write("go\n")
                trainer.stdin.flush()
            said = [trainer.communicate(timeout=200)[0] for trainer in trainers]
            self.assertEqual([trainer.returncode for trainer in trainers], [0, 0])
        return [[record for batch in json.loads(text) for record in batch] for text in said]

    def test_two_processes_of_a_job_have_each_element_of_a_pass_once_between_them(self):
        with Cluster(2) as service:
            seen = self.train(service, "job", epochs=1)
        self.assertEqual(sorted(seen[0] + seen[1]), number(epochs=1))

    def test_two_processes_without_a_job_name_have_every_element_each(self):
        with Cluster(2) as service:
            seen = self.train(service, "", epochs=2)
        for records in seen:
            self.assertEqual(sorted(records), number(epochs=2))

    def test_passes_of_a_job_of_one_process_are_whole(self):
        with Cluster(2) as service:
            model = Seen()  # not built: Keras looks at a batch first, which belongs to the job
            ds = pairs().distribute("distributed_epoch", service, job_name="job")
            model.fit(ps.keras.dataset(ds), epochs=3, verbose=0)
        self.assertEqual(model.all_records(), number(epochs=3))

    def test_an_epoch_may_have_more_batches_than_the_one_before(self):
        with Cluster(1) as service:
            # Each has its own reader: iterators over one of them would read pass after pass.
            ds, rest = (
                pairs().distribute("distributed_epoch", service, job_name="job", max_outstanding_requests=1)
                for _ in range(2)
            )
            others = []

            class ReadTheRest(keras.callbacks.Callback):
                def on_train_batch_end(self, batch, logs=None):
                    if not others:
                        others.extend(int(record) for x, _ in rest for record in x.numpy().ravel())

            model = Seen()
            model.fit(ps.keras.dataset(ds), epochs=2, callbacks=[ReadTheRest()], verbose=0)
        self.assertGreater(len(others), ROWS // 2)
        self.assertEqual(sorted(model.all_records() + others), number(epochs=2))

    def test_a_state_goes_on_after_the_last_step(self):
        keep = ps.data.service.AckMode.ON_COMMIT
        with Cluster(1) as service, tempfile.TemporaryDirectory() as folder:
            ds = pairs().distribute("distributed_epoch", service, job_name="job", ack_mode=keep)
            path = os.path.join(folder, "data.json")
            first = ps.keras.dataset(ds)

            class Stop(keras.callbacks.Callback):
                def on_train_batch_end(self, batch, logs=None):
                    if batch == 2:
                        state = first.state_dict()
                        with open(path, "w") as file:
                            json.dump({key: value.hex() for key, value in state.items()}, file)
                        first.commit(state)
                        self.model.stop_training = True

            model = Seen()
            model.fit(first, callbacks=[Stop()], verbose=0)
            self.assertEqual(len(model.all_records()), 24)
            first.stop()
            second = ps.keras.dataset(ds)
            with open(path) as file:
                second.load_state_dict({key: bytes.fromhex(value) for key, value in json.load(file).items()})
            model.fit(second, verbose=0)
        self.assertEqual(model.all_records(), number(epochs=1))


if __name__ == "__main__":
    unittest.main()
