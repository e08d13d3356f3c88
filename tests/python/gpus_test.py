# SPDX-License-Identifier: Apache-2.0
"""Values of replicas on GPUs, as Python sees them; the GPUs are fake (fake_gpus_library.cc)."""

import ctypes
import gc
import os
import threading
import unittest

import numpy as np

import penstock as ps
from dlpack import in_capsule
from penstock import distribute

_gpus = ctypes.CDLL(os.environ["LD_PRELOAD"].split(":")[0])
_gpus.fake_stream.restype = ctypes.c_uint64
_gpus.fake_read.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64]

LEGACY, PER_THREAD, NONE = 1, 2, -1
CUDA = 2


def read(address, count, stream, device=0):
    """Queues a read on `stream`; the int64 values are there once the devices have run."""
    values = np.zeros(count, np.int64)
    _gpus.fake_read(device, stream, values.ctypes.data, address, values.nbytes)
    return values


class Gpus(unittest.TestCase):
    def setUp(self):
        self.iterators = []

    def tearDown(self):
        _gpus.fake_run()  # an iterator waits for copies under way
        self.iterators.clear()
        gc.collect()
        self.assertEqual(_gpus.fake_misuses(), 0)

    def batches(self, count=4, devices=("GPU:0",), depth=0):
        """Returns an iterator over batches of 8 rows for each device."""
        strategy = distribute.MirroredStrategy(list(devices))
        rows = ps.Dataset.range(8 * count * len(devices)).batch(8 * len(devices))
        self.iterators.append(iter(strategy.experimental_distribute_dataset(rows).prefetch_to_device(depth)))
        return self.iterators[-1]

    def test_a_tensor_reports_its_device_shape_and_dtype(self):
        tensor = next(self.batches())
        self.assertEqual((tensor.device, tensor.shape, tensor.dtype.name, tensor.size), ("GPU:0", (8,), "int64", 8))
        self.assertEqual(tensor.__dlpack_device__(), (CUDA, 0))
        self.assertIn("device=GPU:0", repr(tensor))
        for refused in (tensor.numpy, lambda: np.asarray(tensor), lambda: tensor + 1):
            with self.assertRaisesRegex((TypeError, BufferError), "on GPU:0"):
                refused()
        with self.assertRaisesRegex(BufferError, "on GPU:0"):
            memoryview(tensor)

    def test_dlpack_of_both_versions_is_read_after_the_copy_on_every_stream(self):
        own = _gpus.fake_stream(0)
        for version in (None, (0, 8), (1, 0)):
            for stream in (None, LEGACY, PER_THREAD, own):
                for step, tensor in enumerate(self.batches(2)):
                    capsule = tensor.__dlpack__(stream=stream, max_version=version)
                    array = in_capsule(capsule)
                    self.assertEqual((array.device_type, array.device_id, array.ndim), (CUDA, 0, 1))
                    self.assertEqual((array.code, array.bits, array.lanes), (0, 64, 1))
                    self.assertEqual((array.shape[0], array.strides[0], array.byte_offset), (8, 1, 0))
                    # Queued before the device has copied anything: the stream itself waits.
                    values = read(array.data, 8, stream or LEGACY)
                    _gpus.fake_run()
                    self.assertEqual(values.tolist(), list(range(8 * step, 8 * step + 8)))
                    del capsule, tensor

    def test_without_a_stream_nothing_waits_and_the_place_stays_until_the_default_stream_is_there(self):
        it = self.batches(8)
        tensor = next(it)
        array = in_capsule(tensor.__dlpack__(stream=NONE))
        early = read(array.data, 8, _gpus.fake_stream(0))
        self.assertEqual(early.shape, (8,))  # any values: the caller asked for no order
        _gpus.fake_run()
        late = read(array.data, 8, LEGACY)
        del tensor, array
        self.assert_next_waits_for_the_device(it, late, list(range(8)))

    def test_streams_that_are_none_are_refused(self):
        tensor = next(self.batches())
        for stream in (0, -2):
            with self.assertRaisesRegex(BufferError, f"stream {stream} is not a CUDA stream"):
                tensor.__dlpack__(stream=stream)
        with self.assertRaisesRegex(BufferError, "is on GPU:0, and is not copied to other devices"):
            tensor.__dlpack__(dl_device=(1, 0))
        with self.assertRaisesRegex(BufferError, "without it, then copy"):
            tensor.__dlpack__(copy=True)
        tensor.__dlpack__(dl_device=(CUDA, 0), copy=False)

    def test_cudas_array_interface(self):
        tensor = next(self.batches())
        interface = tensor.__cuda_array_interface__
        values = read(interface["data"][0], 8, interface["stream"])
        _gpus.fake_run()
        self.assertEqual(values.tolist(), list(range(8)))
        del interface["data"]
        self.assertEqual(
            interface, {"shape": (8,), "typestr": "<i8", "strides": None, "version": 3, "stream": LEGACY}
        )
        host = next(iter(ps.Dataset.range(1)))
        self.assertFalse(hasattr(host, "__cuda_array_interface__"))
        self.assertEqual(host.device, "CPU:0")

    def assert_next_waits_for_the_device(self, it, values, expected):
        """All places but one are held by streams that have not read yet: `it` gives no more until they have."""
        own = _gpus.fake_stream(0)
        pending = [values]
        given = []

        def take():
            for tensor in it:
                given.append(read(in_capsule(tensor.__dlpack__(stream=own)).data, 8, own))
                del tensor

        thread = threading.Thread(target=take)
        thread.start()
        while it.copy_stats()[0]["waits"] == 0:  # until a place is missing
            pass
        self.assertLess(len(given), 7)
        while thread.is_alive():
            _gpus.fake_run()
        thread.join()
        _gpus.fake_run()
        self.assertEqual(pending[0].tolist(), expected)
        self.assertEqual([of.tolist() for of in given], [list(range(8 * i, 8 * i + 8)) for i in range(1, 8)])

    def test_a_place_goes_back_after_the_work_of_its_readers(self):
        it = self.batches(8)
        tensor = next(it)
        own = _gpus.fake_stream(0)
        capsule = tensor.__dlpack__(stream=own, max_version=(1, 0))
        values = read(in_capsule(capsule).data, 8, own)
        del tensor, capsule
        self.assert_next_waits_for_the_device(it, values, list(range(8)))

    def test_each_replica_has_its_own_device(self):
        for step, both in enumerate(self.batches(2, devices=("GPU:0", "GPU:3"), depth=2)):
            self.assertEqual([one.device for one in both.values], ["GPU:0", "GPU:3"])
            read_back = []
            for one in both.values:
                device = one.__dlpack_device__()[1]
                read_back.append(read(in_capsule(one.__dlpack__()).data, 8, LEGACY, device))
            _gpus.fake_run()
            self.assertEqual(np.concatenate(read_back).tolist(), list(range(16 * step, 16 * step + 16)))
            del one, both

    def iterator(self, dataset, gpu):
        self.iterators.append(ps.Iterator(dataset, gpu=gpu))
        return self.iterators[-1]

    def read_all(self, it, gpu, steps=None):
        """Returns the values of the next `steps` batches of 8, or of all; they must be on that GPU."""
        values = []
        while steps is None or len(values) < 8 * steps:
            tensor = next(it, None)
            if tensor is None:
                break
            self.assertEqual(tensor.device, f"GPU:{gpu}")
            of_step = read(in_capsule(tensor.__dlpack__()).data, 8, LEGACY, gpu)
            _gpus.fake_run()
            values += of_step.tolist()
            del tensor
        return values

    def test_an_iterator_without_a_group_gives_elements_on_its_gpu(self):
        dataset = ps.Dataset.range(64).batch(8)
        it = self.iterator(dataset, gpu=1)
        values = self.read_all(it, 1, steps=3)
        state = it.save()
        other = self.iterator(dataset, gpu=2)
        other.restore(state)
        self.assertEqual(values + self.read_all(other, 2), list(range(64)))
        self.assertEqual(values + self.read_all(it, 1), list(range(64)))
        with self.assertRaises(ps.errors.InvalidArgumentError):
            ps.Iterator(dataset).restore(state)
        with self.assertRaises(ps.errors.NotFoundError):
            ps.Iterator(dataset, gpu=9)

    def test_elements_beyond_the_places_stay_on_the_host(self):
        held = list(self.iterator(ps.Dataset.range(64).batch(8), gpu=0))
        self.assertEqual([tensor.device for tensor in held], ["GPU:0"] * 4 + ["CPU:0"] * 4)
        self.assertEqual(np.concatenate([tensor.numpy() for tensor in held[4:]]).tolist(), list(range(32, 64)))
        values = [read(in_capsule(tensor.__dlpack__()).data, 8, LEGACY) for tensor in held[:4]]
        _gpus.fake_run()
        self.assertEqual(np.concatenate(values).tolist(), list(range(32)))

    def test_strings_and_row_splits_stay_on_the_host(self):
        strategy = distribute.MirroredStrategy(["GPU:0"])
        dataset = ps.Dataset.from_tensors({"word": np.array([b"a", b"bc"], object), "x": np.arange(2, dtype=np.int64)})
        self.iterators.append(iter(strategy.experimental_distribute_dataset(dataset)))
        values = next(self.iterators[-1])
        self.assertEqual(values["word"].numpy().tolist(), [b"a", b"bc"])
        self.assertEqual((values["word"].device, values["x"].device), ("CPU:0", "GPU:0"))


if __name__ == "__main__":
    unittest.main()
