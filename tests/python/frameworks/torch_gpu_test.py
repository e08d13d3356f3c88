# SPDX-License-Identifier: Apache-2.0
"""Elements on a real GPU as torch, JAX and CuPy read them. Without a GPU all of it is skipped, or fails if
PENSTOCK_REQUIRE_GPU is set."""
import itertools
import os
import sys
import unittest

import numpy as np
import penstock as ps
import torch
from penstock import distribute

ROWS, BATCH, WIDTH = 640, 64, 4096


def why_not():
    """Returns why nothing can run here; None if it can."""
    if not torch.cuda.is_available():
        return "torch finds no GPU"
    return None if ps._core.count_gpus() > 0 else "this Penstock finds no GPU"


class OnAGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        service = ps.data.service
        dispatcher = service.DispatchServer()
        cls.addClassCleanup(dispatcher.stop)
        worker = service.WorkerServer(service.WorkerConfig(dispatcher.target.split("://")[1]))
        cls.addClassCleanup(worker.stop)
        rows = ps.Dataset.range(ROWS).map(
            lambda x: {"row": x, "values": (x + ps.ops.range(0, WIDTH)).astype(ps.float32), "flag": x % 2 == 0}
        )
        cls.own = rows.batch(BATCH)
        cls.served = cls.own.apply(service.distribute("distributed_epoch", dispatcher.target, data_transfer_protocol="shm"))

    def assert_rows(self, batch):
        rows = batch["row"]
        self.assertTrue(torch.equal(batch["values"], (rows[:, None] + torch.arange(WIDTH, device="cuda")).float()))
        self.assertTrue(torch.equal(batch["flag"], rows % 2 == 0))

    def test_a_loader_gives_every_row_once(self):
        for dataset in (self.own, self.served):
            seen = []
            for batch in ps.torch.DataLoader(dataset, device="cuda"):
                self.assertEqual({str(tensor.device) for tensor in batch.values()}, {"cuda:0"})
                self.assert_rows(batch)
                seen.append(batch["row"].clone())
            self.assertEqual(torch.cat(seen).sort().values.tolist(), list(range(ROWS)))

    def test_any_stream_of_torch_reads_after_the_copy(self):
        streams = [torch.cuda.Stream() for _ in range(3)]
        loader = iter(ps.torch.DataLoader(self.served, device="cuda"))
        rows = 0
        for step in itertools.count():
            with torch.cuda.stream(streams[step % 3]):
                batch = next(loader, None)
                if batch is None:
                    break
                self.assert_rows(batch)
                rows += len(batch["row"])
        self.assertEqual(rows, ROWS)

    def test_a_graph_is_captured_while_elements_come(self):
        static = torch.ones(256, 256, device="cuda")
        static @ static  # cuBLAS allocates the first time, which no capture allows
        for batch in ps.torch.DataLoader(self.served.repeat(3), device="cuda"):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                product = static @ static
            graph.replay()
            self.assertEqual(product[0, 0].item(), 256)
            self.assert_rows(batch)

    def test_copies_run_on_no_stream_of_the_trainers(self):
        work = torch.ones(2048, 2048, device="cuda")
        loader = ps.torch.DataLoader(self.served.repeat(3), device="cuda")
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for batch in loader:
                work = work @ work * 1e-4 + batch["values"].sum()
            torch.cuda.synchronize()
        events = profile.profiler.kineto_results.events()
        copies = {event.device_resource_id() for event in events if event.name().startswith("Memcpy HtoD")}
        kernels = {event.device_resource_id() for event in events if "gemm" in event.name() or "reduce" in event.name()}
        self.assertTrue(copies)
        self.assertTrue(kernels)
        self.assertFalse(copies & kernels, (copies, kernels))

    def test_a_state_goes_on_where_it_was_taken(self):
        loader = ps.torch.DataLoader(self.own, device="cuda")
        reader = iter(loader)
        seen = [next(reader)["row"].clone() for _ in range(4)]
        state = loader.state_dict()
        other = ps.torch.DataLoader(self.own, device="cuda")
        other.load_state_dict(state)
        seen += [batch["row"].clone() for batch in other]
        self.assertEqual(torch.cat(seen).tolist(), list(range(ROWS)))

    def test_jax_and_cupy_read_the_same(self):
        readers = {}
        try:
            import jax

            readers["jax"] = lambda tensor: np.asarray(jax.dlpack.from_dlpack(tensor))
        except ImportError:
            pass
        try:
            import cupy

            readers["cupy"] = lambda tensor: cupy.from_dlpack(tensor).get()
        except ImportError:
            pass
        if not readers:
            self.skipTest("neither JAX nor CuPy is installed")
        for name, read in readers.items():
            with self.subTest(name):
                strategy = distribute.MirroredStrategy(["GPU:0"])
                rows = []
                for batch in strategy.experimental_distribute_dataset(self.own).prefetch_to_device(2):
                    rows += read(batch["row"]).tolist()
                self.assertEqual(rows, list(range(ROWS)))


if __name__ == "__main__":
    if why_not() and "PENSTOCK_REQUIRE_GPU" not in os.environ:
        print(why_not())
        sys.exit(77)
    unittest.main()
