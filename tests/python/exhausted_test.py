# SPDX-License-Identifier: Apache-2.0
"""Processes that may take little more memory than they have: a larger need is an error, and nothing aborts."""
import os
import subprocess
import sys
import textwrap
import unittest

HEAD = """
import gzip, os, re, resource, struct, sys, tempfile, zlib
import numpy as np
import penstock as ps
import penstock.tf as tf
from penstock import errors

service = ps.data.service

folder = tempfile.mkdtemp()

def allow(mib):
    with open("/proc/self/status") as status:
        has = int(re.search(r"VmSize:\\s+(\\d+) kB", status.read()).group(1)) << 10
    resource.setrlimit(resource.RLIMIT_AS, (has + (mib << 20), resource.RLIM_INFINITY))

def refused(dataset, *parts):
    try:
        next(iterator := iter(dataset))
    except errors.ResourceExhaustedError as error:
        for part in parts:
            assert part in str(error), str(error)
        return iterator
    raise SystemExit("it was made")

list(ps.Dataset.range(64).map(lambda x: x + 1).prefetch(2))  # threads are there
"""


class Exhausted(unittest.TestCase):
    def run_python(self, text, before=""):
        done = subprocess.run(
            [sys.executable, "-c", before + HEAD + textwrap.dedent(text)], capture_output=True, text=True, timeout=120, env=os.environ
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_line_that_no_memory_has(self):
        self.run_python("""
            path = os.path.join(folder, "zeros.txt.gz")
            with gzip.open(path, "wb", compresslevel=1) as file:
                for _ in range(64): file.write(bytes(16 << 20))
            with gzip.open(path, "ab") as file: file.write(b"\\nnext\\n")
            allow(256)
            refused(ps.TextLineDataset(path, compression_type="GZIP"), "TextLine")
        """)

    def test_a_picture_that_no_memory_has(self):
        self.run_python("""
            def chunk(kind, data):
                return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
            side = 16384
            deflate = zlib.compressobj(1)
            rows = b"".join(deflate.compress(bytes(1 + side)) for _ in range(side)) + deflate.flush()
            head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
            png = b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
            allow(128)
            data = ps.Dataset.from_tensor_slices([png, png]).map(lambda x: tf.io.decode_png(x, channels=1))
            refused(data, "Map")
        """)

    def test_strings_that_no_memory_has_and_the_next_element(self):
        self.run_python("""
            allow(512)
            texts = [b"a" * (1 << 20), b"b"]
            data = ps.Dataset.from_tensor_slices(texts).map(lambda x: tf.strings.regex_replace(x, "a", "x" * 100000))
            iterator = refused(data, "Map", "element 0")
            assert next(iterator).numpy() == b"b"
        """)

    def test_an_element_above_half_of_the_memory_limit(self):
        self.run_python("""
            sizes = ps.Dataset.from_tensor_slices(np.array([3 << 30, 4], np.int64))
            data = sizes.map(lambda n: tf.fill([n], np.uint8(7)))
            iterator = refused(data, "Map", "element 0", "exceeds the limit of 2147483648 bytes for one element")
            assert next(iterator).shape == (4,)
        """, before="import resource; resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.RLIM_INFINITY))")

    def test_a_thread_that_the_process_does_not_get(self):
        self.run_python("""
            iterator = iter(ps.Dataset.range(5).prefetch(2).prefetch(2).prefetch(2).prefetch(2))
            allow(4)
            try:
                next(iterator)
                raise SystemExit("there was a thread")
            except errors.ResourceExhaustedError as error:
                assert "Prefetch" in str(error) and "thread" in str(error), error
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            assert [int(x) for x in ps.Dataset.range(5).prefetch(2)] == [0, 1, 2, 3, 4]
        """)

    def test_an_element_above_the_budget_is_refused_before_it_is_made(self):
        self.run_python("""
            dispatcher = service.DispatchServer()
            worker = service.WorkerServer(service.WorkerConfig(dispatcher._address, memory_budget_bytes=1 << 20))
            def read(dataset):
                return iter(dataset.distribute("parallel_epochs", dispatcher.target))
            def most():
                with open("/proc/self/status") as status:
                    return int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read()).group(1)) >> 10

            path = os.path.join(folder, "large.tfrecord.gz")
            with tf.io.TFRecordWriter(path, "GZIP") as writer:
                for record in (b"first", bytes(64 << 20), b"last"): writer.write(record)
            above = "exceeds the limit of 1048576 bytes for one element"
            before = most()
            sizes = ps.Dataset.from_tensor_slices(np.array([1 << 8, 1 << 28, 1 << 9], np.int64))
            iterator = read(sizes.map(lambda n: tf.fill([n], np.int64(7))))
            assert next(iterator).shape == (1 << 8,)
            try:
                next(iterator)
                raise SystemExit("it was made")
            except errors.ResourceExhaustedError as error:
                assert "Map" in str(error) and "element 1" in str(error) and above in str(error), error
            assert next(iterator).shape == (1 << 9,)

            iterator = read(ps.TFRecordDataset(path, "GZIP"))
            assert next(iterator).numpy() == b"first"
            try:
                next(iterator)
                raise SystemExit("it was read")
            except errors.ResourceExhaustedError as error:
                assert "TFRecord" in str(error) and "67108864" in str(error) and above in str(error), error
            assert next(iterator).numpy() == b"last"

            for endless in (ps.Dataset.range(1).repeat().batch(1 << 60),
                            ps.Dataset.from_tensors("x" * 1000).repeat().batch(1 << 60)):
                try:
                    next(read(endless))
                    raise SystemExit("it ended")
                except errors.ResourceExhaustedError as error:
                    assert "Batch" in str(error) and above in str(error), error
            assert most() - before < 64, (before, most())
        """)

    def test_results_and_kept_arrays_above_the_budget(self):
        self.run_python("""
            dispatcher = service.DispatchServer()
            worker = service.WorkerServer(
                service.WorkerConfig(dispatcher._address, memory_budget_bytes=1 << 20, python=1))
            above = "exceeds the limit of 1048576 bytes for one element"
            def zeros(n):
                return np.zeros(int(n), np.int64)
            def arrays():
                yield from map(zeros, (8, 1 << 20, 16))
            vector = ps.TensorSpec((None,), "int64")
            sizes = ps.Dataset.from_tensor_slices(np.array([8, 1 << 20, 16], np.int64))
            for data in (sizes.map(ps.py_function(zeros, vector, by_value=True)),
                         ps.Dataset.from_generator(arrays, output_signature=vector, by_value=True)):
                iterator = iter(data.distribute("parallel_epochs", dispatcher.target))
                assert next(iterator).shape == (8,)
                try:
                    next(iterator)
                    raise SystemExit("it was sent")
                except errors.ResourceExhaustedError as error:
                    assert "a result of 83886" in str(error) and above in str(error), error
                    assert "in function" in str(error), error
                assert next(iterator).shape == (16,)
                assert next(iterator, None) is None

            def keeping(n, kept=[]):
                kept.append(n)
                if int(n[0]) == 1: return np.zeros(1 << 20, np.int64)
                return np.stack(kept)[:, 0].copy()
            rows = ps.Dataset.from_tensor_slices(np.arange(4, dtype=np.int64)[:, None])
            # One call at a time: the function's own state shows the order of calls.
            iterator = iter(rows.map(ps.py_function(keeping, vector, by_value=True), num_parallel_calls=1).distribute(
                "parallel_epochs", dispatcher.target))
            given = []
            for _ in range(4):
                try: given.append(next(iterator).numpy().tolist())
                except errors.ResourceExhaustedError: given.append(None)
            assert given == [[0], None, [0, 1, 2], [0, 1, 2, 3]], given

            path = os.path.join(folder, "large.npz")
            np.savez(path, x=np.zeros((1 << 18, 8), np.int32))
            spec = {"x": ps.TensorSpec((8,), "int32")}
            try:
                next(iter(ps.NpyDataset(path, spec).distribute("parallel_epochs", dispatcher.target)))
                raise SystemExit("it was kept")
            except errors.ResourceExhaustedError as error:
                assert path in str(error) and "array 'x', of 8388608 bytes" in str(error) and above in str(error), error
        """)

    def test_a_worker_that_gets_no_thread_for_a_partition(self):
        self.run_python("""
            import subprocess, time
            dispatcher = service.DispatchServer()
            worker = subprocess.Popen(
                [os.environ["PENSTOCK_COMMAND"], "worker", "--permits=4", "--dispatcher-address", dispatcher._address],
                stdout=subprocess.PIPE, text=True, env={**os.environ, "GLIBC_TUNABLES": "glibc.pthread.stack_cache_size=0"})
            def read():  # in four partitions: glibc keeps the stack of the thread that ended last
                return sorted(int(x) for x in ps.Dataset.range(5).distribute("distributed_epoch", dispatcher.target))
            try:
                assert "ready" in worker.stdout.readline()
                assert read() == [0, 1, 2, 3, 4]  # what it needs beside partitions is there
                def size():
                    with open(f"/proc/{worker.pid}/status") as status:
                        return int(re.search(r"VmSize:\\s+(\\d+) kB", status.read()).group(1)) << 10
                sizes = []  # threads that end give theirs back, on a busy machine late
                while len(sizes) < 4 or len(set(sizes[-4:])) > 1:
                    time.sleep(0.3)
                    sizes.append(size())
                has = sizes[-1]
                resource.prlimit(worker.pid, resource.RLIMIT_AS, (has + (4 << 20), resource.RLIM_INFINITY))
                try:
                    read()
                    raise SystemExit("there was a thread")
                except errors.ResourceExhaustedError as error:
                    assert "thread" in str(error) and re.search("partition [1-4]", str(error)), error
                resource.prlimit(worker.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                assert read() == [0, 1, 2, 3, 4]
            finally:
                worker.kill()
        """)


if __name__ == "__main__":
    unittest.main()
