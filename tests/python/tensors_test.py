# SPDX-License-Identifier: Apache-2.0
"""Elements as arrays on their own memory: who may write, what keeps a slot, and what other libraries are told."""
import ctypes
import gc
import os
import threading
import unittest

import numpy as np
import penstock as ps


def address(array):
    return np.asarray(array).__array_interface__["data"][0]


class ArrayOfDlpack(ctypes.Structure):
    """DLPack's own description of an array (dlpack.h), written down again here."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def pointer_of(capsule, name):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)


class Memory(unittest.TestCase):
    def batch(self, n=1000):
        return next(iter(ps.Dataset.range(n).map(lambda x: x * 2).batch(n)))

    def test_all_views_of_a_tensor_are_one_memory(self):
        batch = self.batch()
        capsule = batch.__dlpack__()
        array = ctypes.cast(pointer_of(capsule, b"dltensor"), ctypes.POINTER(ArrayOfDlpack)).contents
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
        self.assertLess(len(seen), 200)  # what is read ahead has some too

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
        self.assertTrue(pointer_of(capsule, b"dltensor_versioned"))

    def test_dlpack_says_dtype_and_shape(self):
        codes = {"bool": 6, "int8": 0, "uint16": 1, "int64": 0, "float16": 2, "float32": 2, "complex64": 5}
        for name, code in codes.items():
            (tensor,) = ps.Dataset.from_tensor_slices(np.ones((1, 2, 3), dtype=name)).map(lambda x: x).batch(1)
            capsule = tensor.__dlpack__()
            array = ctypes.cast(pointer_of(capsule, b"dltensor"), ctypes.POINTER(ArrayOfDlpack)).contents
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


class AsValues(unittest.TestCase):
    def test_a_tensor_counts_as_its_values(self):
        (x,) = ps.Dataset.from_tensors(np.arange(3, dtype=np.float32))
        np.testing.assert_array_equal(x + 1, [1, 2, 3])
        np.testing.assert_array_equal(2 - x, [2, 1, 0])
        np.testing.assert_array_equal(np.sqrt(x), np.sqrt(np.arange(3, dtype=np.float32)))
        np.testing.assert_array_equal(x == [0, 5, 2], [True, False, True])
        self.assertEqual((x.shape, x.dtype, x.ndim, x.size, x.nbytes, len(x)), ((3,), ps.float32, 1, 3, 12, 3))
        self.assertEqual([float(value) for value in x], [0, 1, 2])
        self.assertEqual(
            repr(x), "<penstock.Tensor: shape=(3,), dtype=float32, numpy=array([0., 1., 2.], dtype=float32)>"
        )

    def test_a_scalar_is_a_number(self):
        x = next(iter(ps.Dataset.range(3, 4)))
        self.assertEqual((int(x), float(x), [10, 11, 12, 13][x], bool(x)), (3, 3.0, 13, True))
        self.assertIsInstance(x.numpy(), np.int64)
        self.assertEqual(next(iter(ps.Dataset.from_tensors("é"))).numpy(), "é".encode())


if __name__ == "__main__":
    unittest.main()
