# SPDX-License-Identifier: Apache-2.0
"""ps.torch: tensors on the elements' memory, and positions. Ranks: ranks_test.py."""
import collections
import gc
import os
import signal
import tempfile
import unittest

import numpy as np
import penstock as ps
import torch

Pair = collections.namedtuple("Pair", "x y")


class Tensors(unittest.TestCase):
    def test_they_lie_where_the_element_lies(self):
        dataset = ps.Dataset.range(40).map(lambda x: {"a": x, "b": x / 2}).batch(10)
        plain = iter(dataset)
        element = next(plain)
        for leaf in element.values():
            self.assertEqual(torch.from_dlpack(leaf).data_ptr(), leaf.numpy().ctypes.data)
        loader = ps.torch.DataLoader(dataset)
        leaves = []
        convert = loader._leaf
        loader._leaf = lambda leaf: leaves.append(leaf) or convert(leaf)
        for batch in loader:
            for leaf in leaves:
                self.assertIn(leaf.numpy().ctypes.data, [tensor.data_ptr() for tensor in batch.values()])
            leaves.clear()

    def test_nests_and_values(self):
        dataset = ps.Dataset.range(4).map(lambda x: (Pair(x, x / 2), {"z": x.astype(ps.uint8), "flag": x > 1})).batch(4)
        (batch,) = ps.torch.DataLoader(dataset)
        pair, rest = batch
        self.assertIsInstance(pair, Pair)
        self.assertTrue(torch.equal(pair.x, torch.arange(4)))
        self.assertEqual(pair.y.dtype, torch.float64)
        self.assertTrue(torch.equal(pair.y, torch.arange(4) / 2))
        self.assertEqual((rest["z"].dtype, rest["flag"].dtype), (torch.uint8, torch.bool))
        self.assertEqual(rest["flag"].tolist(), [False, False, True, True])

    def test_every_dtype_that_torch_has(self):
        for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
                      np.float16, np.float32, np.float64, np.complex64, np.complex128, np.bool_):
            values = np.array([0, 1, 1, 0, 1, 1], dtype=dtype).reshape(2, 3)
            (tensor,) = ps.torch.DataLoader(ps.Dataset.from_tensors(values))
            self.assertEqual(str(tensor.numpy().dtype), np.dtype(dtype).name)
            np.testing.assert_array_equal(tensor.numpy(), values)

    def test_strings_are_lists_of_bytes(self):
        texts = np.array([["a", "bc"], ["", "def"], ["g", "h"]])
        (whole,) = ps.torch.DataLoader(ps.Dataset.from_tensors(texts))
        self.assertEqual(whole, [[b"a", b"bc"], [b"", b"def"], [b"g", b"h"]])
        rows = list(ps.torch.DataLoader(ps.Dataset.from_tensor_slices(texts)))
        self.assertEqual(rows, whole)
        self.assertEqual(next(iter(ps.torch.DataLoader(ps.Dataset.from_tensors("one")))), b"one")

    def test_a_tensor_keeps_its_element(self):
        loader = ps.torch.DataLoader(ps.Dataset.range(1000).batch(100))
        kept = list(loader)
        del loader
        gc.collect()
        self.assertEqual(torch.cat(kept).tolist(), list(range(1000)))

    def test_shared_elements_are_cloned_refused_or_shared(self):
        dataset = ps.Dataset.range(6).batch(3).cache()
        cached = ps.torch.DataLoader(dataset.repeat(2))
        first, _, again, _ = cached
        first.add_(100)  # a clone, or an element of its own
        self.assertEqual(again.tolist(), [0, 1, 2])
        held = [element for element in dataset.repeat(2)]
        self.assertFalse(all(element.writable for element in held))
        with self.assertRaisesRegex(RuntimeError, "read_only='clone'"):
            list(ps.torch.DataLoader(dataset.repeat(2), read_only="refuse"))
        shared = list(ps.torch.DataLoader(dataset.repeat(2), read_only="share"))
        self.assertEqual([tensor.tolist() for tensor in shared], [[0, 1, 2], [3, 4, 5]] * 2)

    def test_ragged_rows_are_refused_in_words(self):
        ragged = ps.Dataset.range(4).map(lambda x: ps.ops.range(0, x)).ragged_batch(2)
        with self.assertRaisesRegex(TypeError, "padded_batch"):
            ps.torch.DataLoader(ragged)


class Slots(unittest.TestCase):
    """Repeats the checks of tensors_test.py for torch's tensors: in slots of this process's memory, and in those of a
    segment that a worker writes."""

    @classmethod
    def setUpClass(cls):
        service = ps.data.service
        dispatcher = service.DispatchServer()
        cls.addClassCleanup(dispatcher.stop)
        worker = service.WorkerServer(service.WorkerConfig(dispatcher.target.split("://")[1]))
        cls.addClassCleanup(worker.stop)
        numbers = ps.Dataset.range(100_000).map(lambda x: (x % 1000 + ps.ops.range(0, 1 << 16)).astype(ps.float32))
        distribute = service.distribute("distributed_epoch", dispatcher.target, data_transfer_protocol="shm")
        cls.datasets = {"own": numbers, "shm": numbers.apply(distribute)}

    def each(self):
        """Yields (way, reader) for both kinds of memory."""
        for way, dataset in self.datasets.items():
            reader = iter(ps.torch.DataLoader(dataset))
            for _ in range(100):
                next(reader)
            yield way, reader

    def assert_in_use(self, reader, address):
        seen = {next(reader).data_ptr() for _ in range(300)}
        self.assertLess(len(seen), 200)  # slots are used again
        self.assertNotIn(address, seen)

    def assert_used_again(self, reader, address):
        self.assertTrue(any(next(reader).data_ptr() == address for _ in range(5000)))

    def test_are_in_use_while_anything_of_the_tensor_lives(self):
        parts = {
            "written in place": lambda tensor: tensor.add_(0),
            "NumPy's": lambda tensor: tensor.numpy(),
            "a slice": lambda tensor: tensor[:7],
            "another shape": lambda tensor: tensor.view(8, -1)[0],
            "another dtype": lambda tensor: tensor.view(torch.int32),
            "for autograd": lambda tensor: tensor.requires_grad_().detach(),
        }
        for _, reader in self.each():
            for what, part in parts.items():
                tensor = next(reader)
                address, before = tensor.data_ptr(), tensor[:7].tolist()
                kept = part(tensor)
                del tensor
                gc.collect()
                self.assert_in_use(reader, address)
                if what == "another dtype":
                    kept = kept.view(torch.float32)
                self.assertEqual(kept[:7].tolist(), before, what)
                del kept
                self.assert_used_again(reader, address)

    def test_are_in_use_while_an_exception_holds_a_frame(self):
        def step(batch):
            raise RuntimeError("on the way")

        for _, reader in self.each():
            error = None
            try:
                step(next(reader))
            except RuntimeError as caught:
                error = caught
            held = error.__traceback__.tb_next.tb_frame.f_locals["batch"]
            address, before = held.data_ptr(), held.tolist()
            del held
            gc.collect()
            self.assert_in_use(reader, address)
            self.assertEqual(error.__traceback__.tb_next.tb_frame.f_locals["batch"].tolist(), before)
            del error
            gc.collect()
            self.assert_used_again(reader, address)

    def test_a_child_that_lets_go_and_exits_gives_none_back(self):
        for _, reader in self.each():
            tensor = next(reader)
            before = tensor.tolist()
            child = os.fork()
            if child == 0:
                del tensor
                gc.collect()
                os._exit(0)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assert_in_use(reader, tensor.data_ptr())
            self.assertEqual(tensor.tolist(), before)

    def test_a_child_never_sees_what_is_written_into_its_parents_slot(self):
        """The child has a copy of this process's memory, and no segment."""
        for way, reader in self.each():
            tensor = next(reader)
            before = tensor.tolist()
            may_look, parent_is_done = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(parent_is_done)
                os.read(may_look, 1)
                os._exit(0 if tensor.tolist() == before else 1)
            os.close(may_look)
            tensor.fill_(-1)
            os.close(parent_is_done)
            self.assertEqual(os.waitpid(child, 0)[1], signal.SIGSEGV if way == "shm" else 0)


class Loading(unittest.TestCase):
    def test_inside_torchs_data_loader(self):
        loader = ps.torch.DataLoader(ps.Dataset.range(20).batch(5))
        self.assertEqual(len(loader), 4)
        theirs = torch.utils.data.DataLoader(loader, batch_size=None, num_workers=0)
        self.assertEqual(torch.cat(list(theirs)).tolist(), list(range(20)))
        with self.assertRaisesRegex(RuntimeError, "num_workers=0"):
            list(torch.utils.data.DataLoader(loader, batch_size=None, num_workers=1))

    def test_an_unknown_length_is_an_error(self):
        with self.assertRaises(TypeError):
            len(ps.torch.DataLoader(ps.Dataset.range(3).filter(lambda x: x > 1)))

    def test_a_state_goes_on_after_the_last_element(self):
        def dataset():
            return ps.Dataset.range(100).shuffle(30, seed=1).batch(7).prefetch(4)

        passes = ps.torch.DataLoader(dataset())
        whole, following = ([batch.tolist() for batch in passes] for _ in range(2))
        self.assertNotEqual(whole, following)  # each pass is shuffled differently
        for taken in (0, 3, len(whole)):
            loader = ps.torch.DataLoader(dataset())
            reader = iter(loader)
            for _ in range(taken):
                next(reader)
            with tempfile.TemporaryFile() as file:
                torch.save(loader.state_dict() if taken else ps.torch.DataLoader(dataset(), seed=5).state_dict(), file)
                file.seek(0)
                state = torch.load(file)
            again = ps.torch.DataLoader(dataset())
            again.load_state_dict(state)
            self.assertEqual(again.state_dict(), state)
            self.assertEqual([batch.tolist() for batch in again], whole[taken:])
            self.assertEqual([batch.tolist() for batch in again], following)

    def test_mistakes_raise_errors(self):
        dataset = ps.Dataset.range(3)
        with self.assertRaisesRegex(ValueError, "state_dict"):
            ps.torch.DataLoader(dataset).load_state_dict({})
        with self.assertRaisesRegex(ValueError, "previous"):
            ps.torch.DataLoader(dataset, commit="always")
        with self.assertRaisesRegex(TypeError, "Dataset"):
            ps.torch.DataLoader([1, 2])

    def test_states_are_committed_when_the_next_but_one_is_taken(self):
        loader = ps.torch.DataLoader(ps.Dataset.range(10), commit="previous")
        committed = []
        loader.commit = committed.append
        reader = iter(loader)
        states = []
        for _ in range(4):
            next(reader)
            states.append(loader.state_dict())
        self.assertEqual(committed, states[:2])


if __name__ == "__main__":
    unittest.main()
