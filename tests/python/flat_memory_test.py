# SPDX-License-Identifier: Apache-2.0
"""Reading for long takes no more memory than reading for a while.

PENSTOCK_BATCHES sets the number of batches (1000000 by hand).
"""
import os
import pathlib
import subprocess
import sys
import unittest

import numpy as np
import penstock as ps

service = ps.data.service

BATCHES = int(os.environ.get("PENSTOCK_BATCHES", "200000"))
SAMPLES = 20
SETTLED = 5  # samples until allocators have settled
MAY_GROW = 4 << 20  # bytes: a leak of a pointer a batch is more, in a million


def resident(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class FlatMemory(unittest.TestCase):
    def read(self, iterator, check, *pids):
        """Reads BATCHES batches; neither this process nor `pids` may grow after the first samples."""
        sizes = {pid: [] for pid in (os.getpid(), *pids)}
        every = BATCHES // SAMPLES
        for number in range(every * SAMPLES):
            check(number, next(iterator))
            if (number + 1) % every == 0:
                for pid, samples in sizes.items():
                    samples.append(resident(pid))
        for pid, samples in sizes.items():
            growth = max(samples) - max(samples[:SETTLED])
            mib = [round(size / 2**20, 1) for size in samples]
            print(f"{self.id()}: process {pid}: {every * SAMPLES} batches, MiB {mib}", file=sys.stderr)
            self.assertLess(growth, MAY_GROW, mib)

    def test_nests_in_this_process(self):
        numbers = ps.Dataset.counter().batch(4)
        names = ps.Dataset.from_tensors(np.array(["a name", "another"])).repeat()

        def check(number, element):
            self.assertEqual(int(element["x"][0]), number * 4)
            self.assertEqual(element["name"].shape, (2,))

        self.read(iter(ps.Dataset.zip({"x": numbers, "name": names})), check)

    def test_arrays_in_this_process(self):
        def check(number, array):
            self.assertEqual(array[0], number * 4)

        self.read(ps.Dataset.counter().batch(4).as_numpy_iterator(), check)

    def test_capsules_and_buffers(self):
        def check(number, tensor):
            self.assertEqual(np.from_dlpack(tensor)[0], number * 4)
            self.assertEqual(memoryview(tensor)[1], number * 4 + 1)

        self.read(iter(ps.Dataset.counter().batch(4)), check)

    def start(self, *words):
        """Starts a server that ends with the test; returns its process id and its first line."""
        process = subprocess.Popen([os.environ["PENSTOCK_COMMAND"], *words], stdout=subprocess.PIPE, text=True)
        for end in (process.stdout.close, process.wait, process.kill):
            self.addCleanup(end)
        return process.pid, process.stdout.readline()

    def test_through_a_service_over_shm(self):
        dispatcher, ready = self.start("dispatcher", "--port", "0")
        address = ready.split(" ready at ")[1].split(",")[0].strip()
        worker, ready = self.start("worker", "--port", "0", "--dispatcher-address", address)
        self.assertIn("ready", ready)

        def check(number, array):
            self.assertEqual(array[0], number * 512)

        ds = ps.Dataset.counter().batch(512)
        # A fixed bound: the window of AUTO grows, and slots with it, while readers wait for a busy worker.
        ds = ds.distribute("parallel_epochs", f"grpc://{address}", data_transfer_protocol="shm",
                           max_outstanding_requests=16)
        self.read(ds.as_numpy_iterator(), check, worker, dispatcher)


if __name__ == "__main__":
    unittest.main()
