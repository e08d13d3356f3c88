# SPDX-License-Identifier: Apache-2.0
"""ps.jax: arrays on the elements' memory, divided over four devices of this host, and positions."""
import collections
import gc
import json
import os
import pathlib
import tempfile
import unittest

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"  # read when jax is imported
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import penstock as ps  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

Pair = collections.namedtuple("Pair", "x y")
DEVICES = jax.local_devices()


def rows_of_64_bytes(rows):
    """Elements [16] of float32, each at a multiple of 64 bytes once batched: row i is i, i + 1, …"""
    return ps.Dataset.range(rows).map(lambda x: (x + ps.ops.range(0, 16)).astype(ps.float32))


def expected_rows(begin, end):
    return (np.arange(begin, end)[:, None] + np.arange(16)).astype(np.float32)


def address(array):
    return array.unsafe_buffer_pointer()


class Recorder:
    """Records the addresses of the elements that a loader converts, in order."""

    def __init__(self, loader):
        self.addresses = []
        convert = loader._leaves

        def record(leaves):
            self.addresses.append([leaf.numpy().ctypes.data for leaf in leaves])
            return convert(leaves)

        loader._leaves = record


class Arrays(unittest.TestCase):
    def test_they_lie_where_the_element_lies(self):
        loader = ps.jax.DataLoader(rows_of_64_bytes(40).map(lambda x: {"a": x, "b": x * 2}).batch(10))
        elements = Recorder(loader)
        for i, batch in enumerate(loader):
            self.assertEqual([address(batch["a"]), address(batch["b"])], elements.addresses[i])
            np.testing.assert_array_equal(batch["a"], expected_rows(10 * i, 10 * i + 10))

    def test_nests_are_pytrees(self):
        dataset = ps.Dataset.range(4).map(lambda x: (Pair(x, x / 2), {"z": x.astype(ps.uint8), "flag": x > 1})).batch(4)
        (batch,) = ps.jax.DataLoader(dataset)
        self.assertIsInstance(batch[0], Pair)
        self.assertEqual(jax.tree.structure(batch), jax.tree.structure((Pair(0, 0), {"z": 0, "flag": 0})))
        sums = jax.tree.map(lambda leaf: float(leaf.sum()), batch)
        self.assertEqual(sums, (Pair(6.0, 3.0), {"z": 6.0, "flag": 2.0}))

    def test_every_dtype_with_64_bits_as_jax_is_told(self):
        for x64 in (False, True):
            with jax.enable_x64(x64):
                for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
                              np.float16, np.float32, np.float64, np.complex64, np.complex128, np.bool_):
                    values = np.array([0, 1, 1, 0, 1, 1], dtype=dtype).reshape(2, 3)
                    (array,) = ps.jax.DataLoader(ps.Dataset.from_tensors(values))
                    self.assertEqual(array.dtype, jnp.asarray(values).dtype)
                    np.testing.assert_array_equal(array, values)
        bfloat16 = ps.Dataset.from_tensors(np.ones(32, np.float32)).map(lambda x: x.astype(ps.bfloat16)).batch(4)
        (array,) = ps.jax.DataLoader(bfloat16)
        self.assertEqual(array.dtype, jnp.bfloat16)

    def test_strings_and_ragged_rows_are_refused_by_name(self):
        dataset = ps.Dataset.range(4).map(lambda x: {"name": ps.ops.as_string(x), "x": x})
        with self.assertRaisesRegex(TypeError, r"element\['name'\]: JAX has no strings"):
            ps.jax.DataLoader(dataset)
        ragged = ps.Dataset.range(4).map(lambda x: ps.ops.range(0, x)).ragged_batch(2)
        with self.assertRaisesRegex(TypeError, "padded_batch"):
            ps.jax.DataLoader(ragged)

    def test_donating_an_array_leaves_an_element_that_others_read_as_it_is(self):
        dataset = rows_of_64_bytes(4).batch(4).cache().repeat(3)
        loader = ps.jax.DataLoader(dataset)
        elements = Recorder(loader)
        overwrite = jax.jit(lambda x: x.at[:].set(-1), donate_argnums=0)
        for batch, held in zip(loader, elements.addresses):
            self.assertEqual(address(batch), held[0])
            overwrite(batch).block_until_ready()
        np.testing.assert_array_equal(list(dataset)[-1].numpy(), expected_rows(0, 4))


class Slots(unittest.TestCase):
    """Repeats the checks of tensors_test.py for JAX's arrays."""

    def elements(self, count):
        return ps.Dataset.range(count).map(lambda x: (x + ps.ops.range(0, 1024)).astype(ps.float32)).batch(4)

    def test_are_not_used_again_while_an_array_lives(self):
        for devices in (None, DEVICES):
            loader = ps.jax.DataLoader(self.elements(200), devices=devices)
            elements = Recorder(loader)
            kept = list(loader)
            del loader
            gc.collect()
            self.assertEqual(len({a for (a,) in elements.addresses}), 50)
            for i, batch in enumerate(kept):
                np.testing.assert_array_equal(batch[:, 0], np.arange(4 * i, 4 * i + 4))

    def test_are_kept_by_one_part_alone(self):
        loader = ps.jax.DataLoader(self.elements(200), devices=DEVICES)
        kept = [batch.addressable_shards[3].data for batch in loader]
        gc.collect()
        self.assertEqual([float(part[0, 0]) for part in kept], [4.0 * i + 3 for i in range(50)])

    def test_are_kept_by_a_frame_that_an_exception_holds(self):
        def step(batch):
            raise RuntimeError("on the way")

        for devices in (None, DEVICES):
            loader = ps.jax.DataLoader(self.elements(200), devices=devices)
            elements = Recorder(loader)
            reader = iter(loader)
            error = None
            try:
                step(next(reader))
            except RuntimeError as caught:
                error = caught
            others = sum(1 for _ in reader)
            first, *later = [a for (a,) in elements.addresses]
            self.assertNotIn(first, later)
            self.assertLess(len(set(later)), others)  # slots are used again
            batch = error.__traceback__.tb_next.tb_frame.f_locals["batch"]
            np.testing.assert_array_equal(batch[:, 0], np.arange(4))

    def test_are_kept_by_a_computation_that_is_under_way(self):
        @jax.jit
        def slow_sum(x):
            return jax.lax.fori_loop(0, 200, lambda _, total: total + x.sum() / 200, 0.0)

        sums = [slow_sum(batch) for batch in ps.jax.DataLoader(self.elements(200))]
        expected = [(np.arange(4 * i, 4 * i + 4)[:, None] + np.arange(1024)).sum() for i in range(50)]
        np.testing.assert_allclose(sums, expected, rtol=1e-3)

    def test_come_back_with_the_last_array(self):
        for devices in (None, DEVICES):
            loader = ps.jax.DataLoader(self.elements(4000), devices=devices)
            elements = Recorder(loader)
            for batch in loader:
                try:
                    raise RuntimeError(f"on the way with {batch.shape}")
                except RuntimeError:
                    pass
            self.assertLess(len({a for (a,) in elements.addresses}), 200)  # of 1000; some are read ahead


class Divided(unittest.TestCase):
    def test_each_device_has_its_rows_where_the_element_lies(self):
        loader = ps.jax.DataLoader(rows_of_64_bytes(48).batch(16), devices=DEVICES)
        elements = Recorder(loader)
        for i, batch in enumerate(loader):
            self.assertEqual(batch.shape, (16, 16))
            np.testing.assert_array_equal(batch, expected_rows(16 * i, 16 * i + 16))
            self.assertEqual([shard.device for shard in batch.addressable_shards], DEVICES)
            for d, shard in enumerate(batch.addressable_shards):
                self.assertEqual(address(shard.data), elements.addresses[i][0] + d * 4 * 64)
                np.testing.assert_array_equal(shard.data, expected_rows(16 * i + 4 * d, 16 * i + 4 * d + 4))

    def test_the_order_of_devices_is_that_of_the_rows(self):
        (batch,) = ps.jax.DataLoader(rows_of_64_bytes(4).batch(4), devices=DEVICES[::-1])
        rows = {shard.device: np.asarray(shard.data) for shard in batch.addressable_shards}
        for d, device in enumerate(DEVICES[::-1]):
            np.testing.assert_array_equal(rows[device], expected_rows(d, d + 1))

    def test_rows_that_are_not_aligned_are_copied(self):
        (batch,) = ps.jax.DataLoader(ps.Dataset.range(8).map(lambda x: x.astype(ps.float32)).batch(8), devices=DEVICES)
        np.testing.assert_array_equal(batch, np.arange(8))
        self.assertEqual([shard.data.tolist() for shard in batch.addressable_shards], [[0, 1], [2, 3], [4, 5], [6, 7]])

    def test_a_sharding_divides_columns_and_repeats_as_it_says(self):
        mesh = Mesh(np.array(DEVICES).reshape(2, 2), ("rows", "columns"))
        for spec in (("rows", "columns"), (None, "columns"), ("rows",), (), (("rows", "columns"),)):
            sharding = NamedSharding(mesh, PartitionSpec(*spec))
            (batch,) = ps.jax.DataLoader(rows_of_64_bytes(8).batch(8), sharding=sharding)
            self.assertEqual(batch.sharding, sharding)
            expected = jax.device_put(expected_rows(0, 8), sharding)
            np.testing.assert_array_equal(batch, expected)
            for ours, theirs in zip(batch.addressable_shards, expected.addressable_shards):
                self.assertEqual((ours.device, ours.index), (theirs.device, theirs.index))
                np.testing.assert_array_equal(ours.data, theirs.data)

    def test_each_leaf_has_a_sharding_of_its_own(self):
        mesh = Mesh(np.array(DEVICES), ("batch",))
        by_rows = NamedSharding(mesh, PartitionSpec("batch"))
        dataset = rows_of_64_bytes(8).batch(8).map(lambda x: {"x": x, "sum": ps.ops.reduce_sum(x)})
        (batch,) = ps.jax.DataLoader(dataset, sharding={"x": by_rows, "sum": None})
        self.assertEqual((len(batch["x"].devices()), len(batch["sum"].devices())), (4, 1))
        (batch,) = ps.jax.DataLoader(dataset, devices=DEVICES)  # an array without rows is on all devices
        self.assertTrue(batch["sum"].is_fully_replicated)
        self.assertEqual(float(batch["sum"]), expected_rows(0, 8).sum())

    def test_a_step_over_four_devices_gives_what_one_gives(self):
        weights = jnp.linspace(0, 1, 16)

        @jax.jit
        def step(weights, batch):
            return weights - 1e-5 * jax.grad(lambda w: jnp.mean((batch @ w - 1.0) ** 2))(weights)

        found = []
        for devices in (DEVICES[:1], DEVICES):
            w = jax.device_put(weights, NamedSharding(Mesh(np.array(devices), ("batch",)), PartitionSpec()))
            for batch in ps.jax.DataLoader(rows_of_64_bytes(64).batch(16), devices=devices):
                w = step(w, batch)
            found.append(np.asarray(w))
        np.testing.assert_allclose(*found, rtol=1e-5)

    def test_mistakes_raise_errors(self):
        dataset = rows_of_64_bytes(10).batch(5)
        with self.assertRaisesRegex(ValueError, "drop_remainder=True"):
            list(ps.jax.DataLoader(dataset, devices=DEVICES))
        with self.assertRaisesRegex(ValueError, r"element\['x'\].*cannot be divided evenly over its 4"):
            ps.jax.DataLoader(ps.Dataset.from_tensors({"x": np.zeros((5, 16))}), devices=DEVICES)
        by_rows = NamedSharding(Mesh(np.array(DEVICES), ("batch",)), PartitionSpec("batch"))
        with self.assertRaisesRegex(ValueError, "not both"):
            ps.jax.DataLoader(dataset, devices=DEVICES, sharding=by_rows)
        with self.assertRaisesRegex(ValueError, "different structures"):
            ps.jax.DataLoader(dataset, sharding={"x": by_rows})
        with self.assertRaisesRegex(TypeError, "str"):
            ps.jax.DataLoader(dataset, sharding="batch")
        with self.assertRaisesRegex(ValueError, "one or more"):
            ps.jax.DataLoader(dataset, devices=[])


class Positions(unittest.TestCase):
    def test_a_state_goes_on_after_the_last_array(self):
        def loader():
            dataset = ps.Dataset.range(96).shuffle(30, seed=1).map(lambda x: x.astype(ps.int32)).batch(8).prefetch(4)
            return ps.jax.DataLoader(dataset, devices=DEVICES)

        passes = loader()
        whole, following = ([batch.tolist() for batch in passes] for _ in range(2))
        self.assertNotEqual(whole, following)  # each pass is shuffled differently
        with tempfile.TemporaryDirectory() as folder:
            first = loader()
            reader = iter(first)
            for _ in range(5):
                next(reader)
            path = pathlib.Path(folder, "position")
            path.write_bytes(first.state_dict()["penstock"])
            again = loader()
            again.load_state_dict({"penstock": path.read_bytes()})
        self.assertEqual([batch.tolist() for batch in again], whole[5:])
        self.assertEqual([batch.tolist() for batch in again], following)

    def test_each_element_of_a_job_is_given_once_over_a_restart(self):
        service = ps.data.service
        dispatcher = service.DispatchServer()
        worker = service.WorkerServer(service.WorkerConfig(dispatcher.target.split("://")[1]))
        dataset = ps.Dataset.range(160).map(lambda x: x.astype(ps.int32)).batch(8)
        keep = service.AckMode.ON_COMMIT
        dataset = dataset.distribute("distributed_epoch", dispatcher.target, job_name="job", ack_mode=keep)
        first = ps.jax.DataLoader(dataset, devices=DEVICES)
        read = []
        reader = iter(first)
        for _ in range(6):
            read += next(reader).tolist()
        state = first.state_dict()
        first.commit(state)
        for _ in range(4):
            next(reader)  # not in the state
        first.stop()
        del reader, first
        second = ps.jax.DataLoader(dataset, devices=DEVICES)
        second.load_state_dict(state)
        for batch in second:
            read += batch.tolist()
        self.assertEqual(sorted(read), list(range(160)))
        worker.stop()
        dispatcher.stop()

    def test_a_state_of_another_kind_is_refused(self):
        loader = ps.jax.DataLoader(ps.Dataset.range(3))
        self.assertEqual(len(loader), 3)
        with self.assertRaisesRegex(ValueError, "state_dict"):
            loader.load_state_dict(json.loads("{}"))


if __name__ == "__main__":
    unittest.main()
