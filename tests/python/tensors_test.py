# SPDX-License-Identifier: Apache-2.0
"""Elements as arrays on their own memory: which are writable, what keeps a slot, and what other libraries get."""
import gc
import os
import threading
import unittest

import numpy as np
import penstock as ps
from dlpack import in_capsule


def address(array):
    return np.asarray(array).__array_interface__["data"][0]


class Memory(unittest.TestCase):
    def batch(self, n=1000):
        return next(iter(ps.Dataset.range(n).map(lambda x: x * 2).batch(n)))

    def test_all_views_of_a_tensor_are_one_memory(self):
        batch = self.batch()
        capsule = batch.__dlpack__()
        array = in_capsule(capsule)
        views = [batch.numpy(), np.asarray(batch), np.asarray(memoryview(batch)), np.from_dlpack(batch)]
        self.assertEqual({address(view) for view in views} | {array.data}, {address(batch)})
        self.assertEqual(address(batch) % 64, 0)

    def test_an_array_keeps_its_element(self):
        arrays = [element.numpy() for element in ps.Dataset.range(50).map(lambda x: x + ps.ops.range(0, 1000)).batch(1)]
        gc.collect()
        for i, array in enumerate(arrays):
            np.testing.assert_array_equal(array[0], np.arange(i, i + 1000))
        self.assertEqual(len({address(array) for array in arrays}), 50)

    def test_a_slot_comes_back_with_the_last_reference(self):
        seen = set()
        for element in ps.Dataset.range(1000).map(lambda x: x + ps.ops.range(0, 1000)).batch(1):
            seen.add(address(element))
            try:
                raise RuntimeError("on the way")
            except RuntimeError:
                pass
        self.assertLess(len(seen), 200)  # elements that are read ahead have some too

    def test_elements_of_one_reader_are_writable(self):
        batch = self.batch()
        self.assertTrue(batch.writable)
        array = batch.numpy()
        array[0] = 7
        self.assertEqual(batch[0], 7)

    def test_elements_that_others_read_are_not(self):
        _, element = ps.Dataset.from_tensors(np.arange(3)).cache().repeat(2)  # the second comes out of the cache
        self.assertFalse(element.writable)
        with self.assertRaises(ValueError):
            element.numpy()[0] = 1
        with self.assertRaises(BufferError):
            element.__dlpack__()
        capsule = element.__dlpack__(max_version=(1, 0))
        self.assertIn("dltensor_versioned", repr(capsule))
        self.assertEqual(in_capsule(capsule).data, address(element))

    def test_dlpack_says_dtype_and_shape(self):
        codes = {"bool": 6, "int8": 0, "uint16": 1, "int64": 0, "float16": 2, "float32": 2, "complex64": 5}
        for name, code in codes.items():
            (tensor,) = ps.Dataset.from_tensor_slices(np.ones((1, 2, 3), dtype=name)).map(lambda x: x).batch(1)
            capsule = tensor.__dlpack__()
            array = in_capsule(capsule)
            self.assertEqual((array.device_type, array.device_id, array.lanes, array.byte_offset), (1, 0, 1, 0))
            self.assertEqual((array.code, array.bits), (code, np.dtype(name).itemsize * 8))
            self.assertEqual(array.shape[: array.ndim], [1, 2, 3])
            self.assertEqual(array.strides[: array.ndim], [6, 3, 1])
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))

    def test_dlpack_refuses_what_it_cannot_do(self):
        batch = self.batch()
        for arguments in ({"stream": 1}, {"dl_device": (2, 0)}, {"copy": True}):
            with self.assertRaises(BufferError):
                batch.__dlpack__(**arguments)
        with self.assertRaises(BufferError):
            next(iter(ps.Dataset.from_tensors("text"))).__dlpack__()

    def test_strings_have_no_buffer(self):
        tensor = next(iter(ps.Dataset.from_tensors(["a", "bc"])))
        with self.assertRaises(BufferError):
            memoryview(tensor)
        self.assertEqual(tensor.numpy().tolist(), [b"a", b"bc"])

    def test_a_child_is_told_that_its_parents_loans_are_void(self):
        batch = self.batch()
        iterator = iter(ps.Dataset.range(10))
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            said = []
            for use in (batch.numpy, lambda: next(iterator), iterator.save):
                try:
                    use()
                    said.append("nothing")
                except ps.errors.FailedPreconditionError:
                    said.append("void")
            del batch, iterator, use
            gc.collect()
            os.write(write, " ".join(said).encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(write)
        self.assertEqual(os.read(read, 100), b"void void void")
        os.close(read)
        self.assertEqual(batch[1], 2)
        self.assertEqual(next(iterator).numpy(), 0)

    def test_loans_may_be_let_go_on_any_thread(self):
        elements = list(ps.Dataset.range(64).map(lambda x: x + ps.ops.range(0, 1000)).batch(1).prefetch(4))

        def drop():
            while elements:
                try:
                    elements.pop()
                except IndexError:
                    return

        threads = [threading.Thread(target=drop) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(elements, [])


class AsNumpy(unittest.TestCase):
    """as_numpy_iterator() makes arrays without tensors if all leaves are numbers."""

    NUMBERS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"

    def test_scalars_are_numpys_of_their_dtype(self):
        for name in self.NUMBERS.split():
            values = np.array([0, 1, -1, 1.5, 100], dtype="float64").astype(name)
            got = list(ps.Dataset.from_tensor_slices(values).as_numpy_iterator())
            self.assertEqual({type(value) for value in got}, {np.dtype(name).type})
            np.testing.assert_array_equal(got, values)
        extremes = np.array([0, 2**63, 2**64 - 1], dtype="uint64")
        self.assertEqual(list(ps.Dataset.from_tensor_slices(extremes).as_numpy_iterator()), extremes.tolist())

    def test_arrays_have_dtype_and_shape_and_keep_their_element(self):
        for name in self.NUMBERS.split():
            for shape in ((5, 2, 3), (5, 0), (5, 1)):
                values = np.arange(np.prod(shape)).reshape(shape).astype(name)
                got = list(ps.Dataset.from_tensor_slices(values).map(lambda x: x).as_numpy_iterator())
                gc.collect()
                self.assertEqual({(array.dtype, array.shape) for array in got}, {(np.dtype(name), shape[1:])})
                np.testing.assert_array_equal(got, values)

    def test_nests_stay_nests(self):
        ds = ps.Dataset.range(3).map(lambda x: {"b": (x, x + ps.ops.range(0, 2)), "a": x * 2})
        element = list(ds.as_numpy_iterator())[1]
        self.assertEqual(list(element), ["b", "a"])
        self.assertEqual((element["b"][0], element["b"][1].tolist(), element["a"]), (1, [1, 2], 2))

    def test_strings_among_numbers(self):
        ds = ps.Dataset.from_tensor_slices((np.array(["x", "yz"]), np.arange(2)))
        self.assertEqual(list(ds.as_numpy_iterator()), [(b"x", 0), (b"yz", 1)])

    def test_shared_elements_are_read_only(self):
        ds = ps.Dataset.from_tensors((np.arange(3), 7)).cache().repeat(2)
        _, (array, scalar) = ds.as_numpy_iterator()
        self.assertFalse(array.flags.writeable)
        self.assertEqual(scalar, 7)
        own, _ = next(ps.Dataset.from_tensors((np.arange(3), 7)).as_numpy_iterator())
        self.assertTrue(own.flags.writeable)


class AsValues(unittest.TestCase):
    def test_a_tensor_counts_as_its_values(self):
        (x,) = ps.Dataset.from_tensors(np.arange(3, dtype=np.float32))
        np.testing.assert_array_equal(x + 1, [1, 2, 3])
        np.testing.assert_array_equal(2 - x, [2, 1, 0])
        np.testing.assert_array_equal(np.sqrt(x), np.sqrt(np.arange(3, dtype=np.float32)))
        np.testing.assert_array_equal(x == [0, 5, 2], [True, False, True])
        self.assertEqual((x.shape, x.dtype, x.ndim, x.size, x.nbytes, len(x)), ((3,), ps.float32, 1, 3, 12, 3))
        self.assertEqual([float(value) for value in x], [0, 1, 2])
        self.assertEqual(((x + 1).numpy().tolist(), (-x).numpy()[1], type(x[0].numpy())), ([1, 2, 3], -1, np.float32))
        self.assertEqual((x * 0.1).dtype, np.float32)
        self.assertEqual(
            repr(x), "<penstock.Tensor: shape=(3,), dtype=float32, numpy=array([0., 1., 2.], dtype=float32)>"
        )

    def test_it_may_stand_in_a_function_that_is_traced(self):
        (ten,) = ps.Dataset.from_tensors(np.int64(10))
        for function in (lambda x: x + ten, lambda x: ten + x):
            self.assertEqual([int(x) for x in ps.Dataset.range(2).map(function)], [10, 11])

    def test_a_scalar_is_a_number(self):
        x = next(iter(ps.Dataset.range(3, 4)))
        self.assertEqual((int(x), float(x), [10, 11, 12, 13][x], bool(x)), (3, 3.0, 13, True))
        self.assertIsInstance(x.numpy(), np.int64)
        self.assertEqual(next(iter(ps.Dataset.from_tensors("é"))).numpy(), "é".encode())


if __name__ == "__main__":
    unittest.main()
