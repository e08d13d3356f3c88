# SPDX-License-Identifier: Apache-2.0
"""Compares sources and transforms from Python with the results of NumPy and Python's own loops."""
import collections
import itertools
import os
import struct
import tempfile
import unittest
import zlib

import numpy as np
import penstock as ps


def read(dataset):
    """Returns all elements, as nested lists of Python's values."""

    def plain(value):
        if isinstance(value, dict):
            return {key: plain(member) for key, member in value.items()}
        if isinstance(value, tuple):
            return type(value)(*map(plain, value)) if hasattr(value, "_fields") else tuple(map(plain, value))
        return value.tolist() if hasattr(value, "tolist") else value

    return [plain(element) for element in dataset.as_numpy_iterator()]


class Sources(unittest.TestCase):
    def test_range_is_pythons(self):
        for arguments in [(5,), (2, 7), (1, 10, 3), (5, 0, -2), (3, 3)]:
            self.assertEqual(read(ps.Dataset.range(*arguments)), list(range(*arguments)))
        self.assertEqual(ps.Dataset.range(3, output_type=ps.int32).element_spec, ps.TensorSpec((), ps.int32))
        with self.assertRaises(ValueError):
            ps.Dataset.range()

    def test_counter_goes_on(self):
        self.assertEqual(read(ps.Dataset.counter(3, 2).take(3)), [3, 5, 7])

    def test_arrays_of_every_dtype_come_back(self):
        for name in set(ps.dtypes.NAMES) - {"bfloat16", "string"}:
            values = np.arange(6).reshape(2, 3).astype(name)
            whole = list(ps.Dataset.from_tensors(values).as_numpy_iterator())
            rows = list(ps.Dataset.from_tensor_slices(values).as_numpy_iterator())
            self.assertEqual([whole[0].dtype, rows[0].dtype], [np.dtype(name)] * 2)
            np.testing.assert_array_equal(whole, [values])
            np.testing.assert_array_equal(rows, values)

    def test_arrays_in_any_layout_come_back(self):
        values = np.arange(24, dtype=np.float32).reshape(4, 6)
        for given in (values.T, values[:, ::2], np.asfortranarray(values), values.astype(">f4")):
            np.testing.assert_array_equal(list(ps.Dataset.from_tensor_slices(given).as_numpy_iterator()), given)

    def test_strings_are_bytes(self):
        self.assertEqual(read(ps.Dataset.from_tensor_slices(["a", "é", ""])), [b"a", "é".encode(), b""])
        self.assertEqual(read(ps.Dataset.from_tensors([[b"x\0y"], [b"z"]])), [[[b"x\0y"], [b"z"]]])
        self.assertEqual(read(ps.Dataset.from_tensors(np.array([["ab", "c"]]))), [[[b"ab", b"c"]]])

    def test_pythons_numbers_are_of_32_bits_where_they_fit(self):
        spec = ps.Dataset.from_tensors(([1.0], [2], 2**40, True)).element_spec
        self.assertEqual([leaf.dtype for leaf in spec], [ps.float32, ps.int32, ps.int64, ps.bool])

    def test_inputs_that_make_no_tensor_are_value_errors(self):
        with self.assertRaises(ValueError):
            ps.Dataset.from_tensors([[1], [2, 3]])
        with self.assertRaises(ValueError):
            ps.Dataset.from_tensor_slices((np.zeros(3), np.zeros(4)))
        with self.assertRaises(ValueError):
            ps.Dataset.from_tensor_slices(1)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            for i in range(3):
                with open(f"{folder}/{i}.txt", "w") as file:
                    file.write(f"a{i}\nb{i}\n")
            files = ps.Dataset.list_files(f"{folder}/*.txt", shuffle=False)
            self.assertEqual(read(files), [f"{folder}/{i}.txt".encode() for i in range(3)])
            lines = [b"a0", b"b0", b"a1", b"b1", b"a2", b"b2"]
            self.assertEqual(read(files.flat_map(ps.TextLineDataset)), lines)
            self.assertEqual(read(ps.TextLineDataset(files)), lines)
            self.assertEqual(
                read(files.interleave(lambda name: ps.TextLineDataset(name), cycle_length=3)),
                [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"],
            )
            self.assertEqual(sorted(read(ps.Dataset.list_files([f"{folder}/0*", f"{folder}/2*"]))), read(files)[::2])
            with open(f"{folder}/raw", "wb") as file:
                file.write(b"headaabbcc")
            self.assertEqual(
                read(ps.FixedLengthRecordDataset(f"{folder}/raw", 2, header_bytes=4)), [b"aa", b"bb", b"cc"]
            )
            np.save(f"{folder}/x.npy", np.arange(6, dtype=np.int16).reshape(3, 2))
            self.assertEqual(
                read(ps.NpyDataset(f"{folder}/x.npy", ps.TensorSpec((2,), ps.int16))), [[0, 1], [2, 3], [4, 5]]
            )
        with self.assertRaises(ps.errors.NotFoundError):
            read(ps.Dataset.list_files("/nowhere/*"))

    def test_tfrecords_as_pythons_own_writer_makes_them(self):
        def crc32c(data):
            table = [0] * 256
            for i in range(256):
                c = i
                for _ in range(8):
                    c = (c >> 1) ^ 0x82F63B78 if c & 1 else c >> 1
                table[i] = c
            crc = 0xFFFFFFFF
            for byte in data:
                crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
            return crc ^ 0xFFFFFFFF

        def masked(data):
            crc = crc32c(data)
            return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

        def framed(record):
            length = struct.pack("<Q", len(record))
            return length + struct.pack("<I", masked(length)) + record + struct.pack("<I", masked(record))

        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/a", "wb") as file:
                file.write(b"".join(map(framed, [b"one", b"", b"three" * 100])))
            self.assertEqual(read(ps.TFRecordDataset(f"{folder}/a")), [b"one", b"", b"three" * 100])
            with open(f"{folder}/z", "wb") as file:
                file.write(zlib.compress(framed(b"packed")))
            self.assertEqual(read(ps.TFRecordDataset(f"{folder}/z", compression_type="ZLIB")), [b"packed"])
            with self.assertRaises(ValueError):
                ps.TFRecordDataset(f"{folder}/z", compression_type="RAR")


class Nests(unittest.TestCase):
    Point = collections.namedtuple("Point", "y x")

    def test_dicts_tuples_and_named_tuples_come_back_as_given(self):
        element = {"b": (np.float32(1), {"z": np.int8(2)}), "a": self.Point(y=np.int64(3), x=b"s")}
        dataset = ps.Dataset.from_tensors(element)
        self.assertEqual(
            dataset.element_spec,
            {
                "b": (ps.TensorSpec((), ps.float32), {"z": ps.TensorSpec((), ps.int8)}),
                "a": self.Point(ps.TensorSpec((), ps.int64), ps.TensorSpec((), ps.string)),
            },
        )
        for again in (dataset, dataset.repeat(2).take(1), dataset.map(lambda x: x), dataset.batch(1).unbatch()):
            self.assertEqual(read(again), [{"b": (1.0, {"z": 2}), "a": self.Point(3, b"s")}])
            self.assertEqual(list(read(again)[0]), ["b", "a"])

    def test_tuples_are_arguments_and_named_tuples_are_not(self):
        pairs = ps.Dataset.from_tensor_slices((np.arange(3), np.arange(3) * 10))
        self.assertEqual(read(pairs.map(lambda a, b: a + b)), [0, 11, 22])
        points = ps.Dataset.from_tensor_slices(self.Point(np.arange(3), np.arange(3) * 10))
        self.assertEqual(read(points.map(lambda p: p.x - p.y)), [0, 9, 18])

    def test_functions_give_nests(self):
        dataset = ps.Dataset.range(2).map(lambda x: {"p": self.Point(x, x + 1), "q": (x * 2, "s")})
        self.assertEqual(
            read(dataset), [{"p": self.Point(i, i + 1), "q": (2 * i, b"s")} for i in range(2)]
        )

    def test_keys_that_are_no_strings_are_refused(self):
        with self.assertRaises(TypeError):
            ps.Dataset.from_tensors({1: 2})


class Transforms(unittest.TestCase):
    def test_batches_are_numpys_rows(self):
        values = np.arange(14, dtype=np.float32).reshape(7, 2)
        batches = list(ps.Dataset.from_tensor_slices(values).batch(3).as_numpy_iterator())
        for i, batch in enumerate(batches):
            np.testing.assert_array_equal(batch, values[3 * i : 3 * i + 3])
        self.assertEqual(len(batches), 3)
        dropped = ps.Dataset.range(7).batch(3, drop_remainder=True)
        self.assertEqual(read(dropped), [[0, 1, 2], [3, 4, 5]])
        self.assertEqual(dropped.element_spec, ps.TensorSpec((3,), ps.int64))
        self.assertEqual(ps.Dataset.range(7).batch(3).element_spec, ps.TensorSpec((None,), ps.int64))

    def test_filter_take_skip_shard_and_concatenate_are_those_of_lists(self):
        numbers = list(range(20))
        dataset = ps.Dataset.range(20)
        self.assertEqual(read(dataset.filter(lambda x: x % 3 == 1)), [x for x in numbers if x % 3 == 1])
        self.assertEqual(read(dataset.skip(4).take(3)), numbers[4:7])
        self.assertEqual(read(dataset.take(-1)), numbers)
        self.assertEqual(read(dataset.shard(3, 1)), numbers[1::3])
        self.assertEqual(read(dataset.take(2).concatenate(dataset.skip(18))), [0, 1, 18, 19])
        self.assertEqual(read(dataset.take_while(lambda x: x < 5)), numbers[:5])
        self.assertEqual(read(dataset.take(2).repeat(3)), [0, 1] * 3)
        self.assertEqual(read(dataset.take(2).enumerate(start=5)), [(5, 0), (6, 1)])
        self.assertEqual(read(dataset.batch(4).rebatch(5)), np.arange(20).reshape(4, 5).tolist())

    def test_shuffle_keeps_all_and_its_seed_decides(self):
        once = read(ps.Dataset.range(100).shuffle(30, seed=4))
        self.assertEqual(sorted(once), list(range(100)))
        self.assertNotEqual(once, list(range(100)))
        self.assertEqual(once, read(ps.Dataset.range(100).shuffle(30, seed=4)))

    def test_zip_takes_nests(self):
        a, b = ps.Dataset.range(3), ps.Dataset.range(10, 20)
        pairs = list(zip(range(3), range(10, 20)))
        for zipped in (ps.Dataset.zip(a, b), ps.Dataset.zip((a, b)), ps.Dataset.zip(datasets=(a, b))):
            self.assertEqual(read(zipped), pairs)
        self.assertEqual(
            read(ps.Dataset.zip({"x": a, "y": (b, a)})), [{"x": i, "y": (j, i)} for i, j in pairs]
        )
        with self.assertRaises(TypeError):
            ps.Dataset.zip(1, 2)

    def test_padded_batch_fills(self):
        ragged = ps.Dataset.range(1, 4).map(lambda n: ps.ops.broadcast_to(n, [1])).map(lambda n: n)
        dataset = ps.Dataset.range(1, 4).map(lambda n: ps.ops.range(0, n))
        self.assertEqual(read(dataset.padded_batch(3)), [[[0, 0, 0], [0, 1, 0], [0, 1, 2]]])
        self.assertEqual(
            read(dataset.padded_batch(3, padded_shapes=[4], padding_values=-1)),
            [[[0, -1, -1, -1], [0, 1, -1, -1], [0, 1, 2, -1]]],
        )
        both = dataset.map(lambda x: {"x": x, "n": ps.ops.size(x)})
        self.assertEqual(
            read(both.padded_batch(2, {"x": [None], "n": []}, {"x": 7, "n": 0}, drop_remainder=True)),
            [{"x": [[0, 7], [0, 1]], "n": [1, 2]}],
        )
        with self.assertRaises(ValueError):
            both.padded_batch(2, padded_shapes={"y": [None]})
        self.assertEqual(read(ragged.batch(3)), [[[1], [2], [3]]])

    def test_ragged_batches(self):
        (batch,) = ps.Dataset.range(1, 4).map(lambda n: ps.ops.range(0, n)).ragged_batch(3)
        self.assertIsInstance(batch, ps.RaggedTensor)
        self.assertEqual(batch.to_list(), [[0], [0, 1], [0, 1, 2]])
        self.assertEqual([row.tolist() for row in batch.numpy()], [[0], [0, 1], [0, 1, 2]])

    def test_windows(self):
        numbers = ps.Dataset.range(6)
        self.assertEqual(read(numbers.window(3).flat_map(lambda w: w.batch(3))), [[0, 1, 2], [3, 4, 5]])
        self.assertEqual(
            read(numbers.window(3, shift=1, drop_remainder=True).batch()), [[i, i + 1, i + 2] for i in range(4)]
        )
        self.assertEqual(read(numbers.window(4).flat_map(lambda w: w.filter(lambda x: x % 2 == 0))), [0, 2, 4])
        grouped = numbers.group_by_window(lambda x: x % 2, lambda key, w: w.batch(3), window_size=3)
        self.assertEqual(sorted(read(grouped)), [[0, 2, 4], [1, 3, 5]])
        windows = numbers.group_by_window(lambda x: x % 2, lambda key, w: ps.Dataset.from_tensors(w), window_size=3)
        self.assertEqual(sorted(read(windows.flat_map(lambda w: w.batch(3)))), [[0, 2, 4], [1, 3, 5]])

    def test_a_window_of_nests_is_a_nest_of_datasets(self):
        rows = ps.Dataset.range(4).map(lambda x: {"b": (x, -x), "a": x * 10})
        windows = rows.window(2)
        self.assertEqual(
            read(windows.flat_map(lambda w: ps.Dataset.zip((w["a"].batch(2), w["b"][1].batch(2))))),
            [([0, 10], [0, -1]), ([20, 30], [-2, -3])],
        )
        pairs = ps.Dataset.zip(ps.Dataset.range(4), ps.Dataset.range(4, 8)).window(2)
        self.assertEqual(read(pairs.flat_map(lambda a, b: b.map(lambda x: x * 2).concatenate(a))), [8, 10, 0, 1, 12, 14, 2, 3])
        grouped = rows.group_by_window(lambda x: x["a"] % 20, lambda key, w: w.batch(2), window_size=2)
        self.assertEqual(sorted(x["a"] for x in read(grouped)), [[0, 20], [10, 30]])

    def test_buckets_by_length(self):
        dataset = ps.Dataset.from_tensor_slices([1, 5, 2, 6]).map(lambda n: ps.ops.range(0, n))
        batches = read(dataset.bucket_by_sequence_length(ps.ops.size, [4], [2, 2]))
        self.assertEqual(sorted(len(batch[0]) for batch in batches), [2, 6])

    def test_flat_map_and_interleave_of_values(self):
        rows = ps.Dataset.from_tensor_slices(np.arange(6).reshape(3, 2))
        self.assertEqual(read(rows.flat_map(ps.Dataset.from_tensor_slices)), list(range(6)))
        self.assertEqual(read(ps.Dataset.range(4).flat_map(ps.Dataset.range)), [0, 0, 1, 0, 1, 2])
        self.assertEqual(
            read(ps.Dataset.range(2).interleave(lambda x: ps.Dataset.from_tensors((x, x + 1)).repeat(2))),
            [(0, 1), (1, 2), (0, 1), (1, 2)],
        )

    def test_scan_and_reduce_are_pythons_accumulate(self):
        numbers = ps.Dataset.range(1, 6)
        sums = numbers.scan(np.int64(0), lambda s, x: (s + x, s + x))
        self.assertEqual(read(sums), list(itertools.accumulate(range(1, 6))))
        self.assertEqual(numbers.reduce(np.int64(0), lambda s, x: s + x).numpy(), 15)
        total, count = numbers.reduce((np.int64(0), 0), lambda s, x: (s[0] + x, s[1] + 1))
        self.assertEqual((int(total), int(count)), (15, 5))

    def test_mixing_datasets(self):
        three = [ps.Dataset.from_tensors(name).repeat() for name in "abc"]
        choice = ps.Dataset.range(3).repeat(2)
        self.assertEqual(read(ps.Dataset.choose_from_datasets(three, choice)), [b"a", b"b", b"c"] * 2)
        sampled = read(ps.Dataset.sample_from_datasets(three, [0.0, 1.0, 0.0], seed=1).take(5))
        self.assertEqual(sampled, [b"b"] * 5)

    def test_cache_prefetch_and_options_change_nothing(self):
        options = ps.Options()
        options.deterministic = True
        options.threading.private_threadpool_size = 1
        dataset = ps.Dataset.range(5).cache().prefetch(ps.AUTOTUNE).with_options(options)
        self.assertEqual(read(dataset), list(range(5)))
        with tempfile.TemporaryDirectory() as folder:
            cached = ps.Dataset.range(5).cache(f"{folder}/c")
            self.assertEqual([read(cached), read(cached)], [list(range(5))] * 2)
            self.assertTrue(os.listdir(folder))

    def test_a_cache_belongs_to_its_dataset(self):
        random = ps.Dataset.range(5).map(lambda x: ps.ops.random_uniform(())).cache()
        first = read(random)
        self.assertEqual([read(random), read(random.map(lambda x: x))], [first, first])

    def test_an_unusable_cache_file_is_an_error_everywhere(self):
        with tempfile.TemporaryDirectory() as folder:
            read(ps.Dataset.range(5).cache(f"{folder}/five"))
            with open(f"{folder}/five", "rb") as whole, open(f"{folder}/cut", "wb") as cut:
                cut.write(whole.read()[:-9])
            for name in (f"{folder}/no/such/folder", folder, f"{folder}/five", f"{folder}/cut"):
                bad = ps.Dataset.range(3).cache(name)
                for dataset in (
                    bad,
                    bad.take(2),
                    bad.shuffle(3),
                    bad.map(lambda x: x + 1),
                    bad.batch(2),
                    bad.prefetch(1),
                    ps.Dataset.zip((bad, bad)),
                ):
                    with self.assertRaises(ps.errors.Error, msg=f"{name}: {dataset}"):
                        list(dataset)
                    with self.assertRaises(ps.errors.Error, msg=f"{name}: {dataset}"):
                        next(iter(dataset))

    def test_each_epoch_is_shuffled_differently(self):
        def epochs():
            dataset = ps.Dataset.range(20).shuffle(20, seed=3, reshuffle_each_iteration=True)
            return [read(dataset) for _ in range(3)]

        first = epochs()
        self.assertEqual(len({tuple(epoch) for epoch in first}), 3)
        self.assertEqual(epochs(), first, "another dataset begins with its first")
        fixed = ps.Dataset.range(20).shuffle(20, seed=3, reshuffle_each_iteration=False)
        self.assertEqual(read(fixed), read(fixed))

    def test_options_hold_for_what_is_built_on_them(self):
        options = ps.Options()
        options.threading.private_threadpool_size = 1
        options.autotune.enabled = True
        dataset = ps.Dataset.range(5).with_options(options).map(lambda x: x + 1)
        others = ps.Options()
        others.deterministic = False
        said = dataset.with_options(others).batch(2).options()
        self.assertEqual((said.threading.private_threadpool_size, said.deterministic), (1, False))
        self.assertEqual(repr(others), "Options(deterministic=False)")
        self.assertEqual(ps.Dataset.range(1).options(), ps.Options())
        with self.assertRaisesRegex(AttributeError, "determinstic.*known options here: autotune"):
            options.determinstic = False
        with self.assertRaisesRegex(AttributeError, "private_threadpool_size"):
            options.threading.private_thread_pool_size = 2

    def test_apply_and_single_elements(self):
        self.assertEqual(read(ps.Dataset.range(5).apply(lambda ds: ds.skip(3))), [3, 4])
        self.assertEqual(ps.Dataset.range(1).get_single_element().numpy(), 0)
        for count in (0, 2):
            with self.assertRaises(ps.errors.InvalidArgumentError):
                ps.Dataset.range(count).get_single_element()

    def test_errors_stand_at_their_elements(self):
        dataset = ps.Dataset.from_tensor_slices(np.array([1, 0, 2])).map(lambda x: 6 // x)
        iterator = iter(dataset)
        self.assertEqual(next(iterator).numpy(), 6)
        with self.assertRaises(ps.errors.InvalidArgumentError):
            next(iterator)
        self.assertEqual(next(iterator).numpy(), 3)
        self.assertEqual(read(dataset.ignore_errors()), [6, 3])


class Questions(unittest.TestCase):
    def test_cardinality_and_len(self):
        self.assertEqual(len(ps.Dataset.range(7).batch(3)), 3)
        self.assertEqual(ps.Dataset.range(7).repeat().cardinality(), ps.INFINITE_CARDINALITY)
        unknown = ps.Dataset.range(7).filter(lambda x: x > 3)
        self.assertEqual(unknown.cardinality(), ps.UNKNOWN_CARDINALITY)
        for dataset in (unknown, ps.Dataset.range(7).repeat()):
            with self.assertRaises(TypeError):
                len(dataset)
            self.assertTrue(dataset)

    def test_repr_is_the_tree_with_specs(self):
        text = repr(ps.Dataset.range(7).map(lambda x: x * 2).batch(3))
        for part in ("Range", "Map", "Batch", "int64"):
            self.assertIn(part, text)
        self.assertGreater(len(text.splitlines()), 2)

    def test_equal_definitions_have_one_fingerprint(self):
        def build(n):
            return ps.Dataset.range(10).map(lambda x: x * n)

        self.assertEqual(build(2).fingerprint, build(2).fingerprint)
        self.assertNotEqual(build(2).fingerprint, build(3).fingerprint)

    def test_bad_arguments_are_value_errors_naming_node_and_argument(self):
        with self.assertRaisesRegex(ValueError, "Batch.*batch_size"):
            ps.Dataset.range(3).batch(0)
        with self.assertRaisesRegex(ValueError, "Shard"):
            ps.Dataset.range(3).shard(2, 2)
        with self.assertRaises(ps.errors.InvalidArgumentError):
            ps.Dataset.range(3).concatenate(ps.Dataset.from_tensors("x"))
        with self.assertRaises(ValueError):
            ps.Dataset.range(3).filter(lambda x: x + 1)

    def test_specs(self):
        spec = ps.TensorSpec([None, 3], np.float32)
        self.assertEqual(repr(spec), "TensorSpec(shape=(None, 3), dtype=penstock.float32)")
        self.assertNotEqual(ps.TensorSpec((3,), ps.int8), ps.TensorSpec((3,), ps.int16))
        self.assertEqual(ps.int64, np.int64)
        self.assertEqual(ps.as_dtype(str), ps.string)
        with self.assertRaises(TypeError):
            ps.as_dtype("int65")


if __name__ == "__main__":
    unittest.main()
