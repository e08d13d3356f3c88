# SPDX-License-Identifier: Apache-2.0
"""ps.torch: tensors on the elements' memory, positions, and ranks of torch.distributed over gloo."""
import collections
import gc
import json
import os
import pathlib
import subprocess
import sys
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

    def test_what_others_read_is_cloned_refused_or_shared(self):
        dataset = ps.Dataset.range(6).batch(3).cache()
        cached = ps.torch.DataLoader(dataset.repeat(2))
        first, _, again, _ = cached
        first.add_(100)  # a clone of its own, or an element of its own
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

    def test_a_state_goes_on_behind_the_last_element(self):
        def dataset():
            return ps.Dataset.range(100).shuffle(30, seed=1).batch(7).prefetch(4)

        whole = [batch.tolist() for batch in ps.torch.DataLoader(dataset())]
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
            self.assertEqual([batch.tolist() for batch in again], whole)  # the next pass

    def test_mistakes_are_said(self):
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


# A rank: reads steps of the job, saves with torch.distributed.checkpoint (or takes that up first), and says what it read.
RANK = """
import json, sys
import penstock as ps
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

rank, world, store, service, folder, steps, restores, coordinated = json.loads(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=world)
dataset = ps.Dataset.range(960).map(lambda x: x * 1).batch(4)
if coordinated:
    dataset = dataset.repeat()
options = {} if coordinated else {"keep": ps.data.service.Keep.COMMITTED}
mode = "parallel_epochs" if coordinated else "distributed_epoch"
loader = ps.torch.DataLoader(ps.torch.distribute(dataset, mode, service, "job", coordinated=coordinated, **options))
state = ps.torch.AllRanks(loader)
if restores:
    dcp.load({"data": state}, checkpoint_id=folder)
read = []
for step, batch in enumerate(loader, 1):
    read += batch.tolist()
    if step == steps:
        break
if steps and not coordinated:
    dcp.save({"data": state}, checkpoint_id=folder)
    state.commit()
dist.barrier()
print(json.dumps(read), flush=True)
dist.destroy_process_group()
"""


class Cluster:
    def __init__(self, workers):
        service = ps.data.service
        self.dispatcher = service.DispatchServer()
        address = self.dispatcher.target.split("://")[1]
        self.workers = [service.WorkerServer(service.WorkerConfig(address)) for _ in range(workers)]

    def __enter__(self):
        return self.dispatcher.target

    def __exit__(self, *_):
        for worker in self.workers:
            worker.stop()
        self.dispatcher.stop()


class Ranks(unittest.TestCase):
    def read(self, world, service, folder, steps=0, restores=False, coordinated=False):
        """What each of `world` ranks reads, each a process."""
        with tempfile.TemporaryDirectory() as place:
            ranks = []
            for rank in range(world):
                told = [rank, world, os.path.join(place, "store"), service, str(folder), steps, restores, coordinated]
                ranks.append(
                    subprocess.Popen(
                        [sys.executable, "-c", RANK, json.dumps(told)], stdout=subprocess.PIPE, text=True
                    )
                )
            read = []
            for rank in ranks:
                said, _ = rank.communicate(timeout=200)
                self.assertEqual(rank.returncode, 0)
                read.append(json.loads(said.splitlines()[-1]))
            return read

    def test_four_ranks_share_a_job_and_two_take_it_up(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder, "checkpoint")
            with Cluster(2) as service:
                before = self.read(4, service, folder, steps=20)
            # A rank may find the rest on its way to others.
            self.assertLessEqual(max(map(len, before)), 80)
            with Cluster(2) as service:
                after = self.read(2, service, folder, restores=True)
            everything = sorted(value for read in before + after for value in read)
            self.assertEqual(everything, list(range(960)))
            self.assertGreaterEqual(sum(map(len, after)), 960 - 320)

    def test_coordinated_ranks_read_a_round_each(self):
        with Cluster(2) as service:
            read = self.read(3, service, "unused", steps=10, coordinated=True)
        self.assertEqual([len(values) for values in read], [40] * 3)


if __name__ == "__main__":
    unittest.main()
