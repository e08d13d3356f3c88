# SPDX-License-Identifier: Apache-2.0
"""Functions that stay Python, and generators: in processes beside this program, and beside workers."""
import collections
import contextlib
import glob
import inspect
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np
import penstock as ps
import penstock.tf as tf

service = ps.data.service
INT = ps.TensorSpec((), "int64")

# A module that the workers can import too.
MODULE = """
import numpy as np

def collatz(x):
    if x % 2 == 0:
        return x // 2
    return 3 * x + 1

def checked(x):
    if x == 13:
        raise ValueError(f"bad luck: {x}")
    return x

def numbers():
    for i in range(100):
        yield np.int64(i)
"""


def collatz(x):
    return x // 2 if x % 2 == 0 else 3 * x + 1


def read(dataset):
    return list(dataset.as_numpy_iterator())


def kill_children():
    """Kills the Python processes that this one has started; one of them may have been reaped just now."""
    found = []
    for task in glob.glob(f"/proc/{os.getpid()}/task/*/children"):
        with contextlib.suppress(OSError):
            found += map(int, pathlib.Path(task).read_text().split())
    for pid in found:
        with contextlib.suppress(OSError):
            if b"penstock child" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)


class Tracing(unittest.TestCase):
    def test_traceable_functions_are_not_sent(self):
        ds = ps.Dataset.range(3).map(lambda x: x * 2, output_signature=INT)
        self.assertIn("function: traced", ds.explain())
        self.assertEqual(read(ds), [0, 2, 4])

    def test_explain_says_how_it_is_sent(self):
        self.assertRegex(
            ps.Dataset.range(3).map(collatz, output_signature=INT).explain(),
            r"Python '__main__:collatz' by cloudpickle, \d+ bytes",
        )
        by_path = ps.Dataset.range(3).map(ps.py_function(os.path.getsize, INT, version=2))
        self.assertIn("Python 'genericpath:getsize' by import path, version 2", by_path.explain())

    def test_explain_names_all_three_ways_of_one_pipeline(self):
        ds = (
            ps.Dataset.range(3)
            .map(lambda x: x * 2)
            .map(ps.py_function(os.path.getsize, INT))
            .map(collatz, output_signature=INT)
        )
        ways = re.findall(r"Map#(\d).*\n *\| function: (.*)", ds.explain())
        self.assertEqual(ways[1:], [("2", "Python 'genericpath:getsize' by import path"), ("1", "traced")])
        self.assertRegex(" ".join(ways[0]), r"^3 Python '__main__:collatz' by cloudpickle, \d+ bytes$")

    def test_interleave_says_the_ways_out(self):
        numbers = ps.Dataset.range(3)
        looks = "interleave cannot run a function in Python, only trace it; .* a map before it .* flat_map"
        with self.assertRaisesRegex(TypeError, looks):
            numbers.interleave(lambda x: ps.Dataset.range(x) if x > 1 else ps.Dataset.range(3))
        gives = "must return a dataset .*, not {}; .* a map before it .* flat_map with an output_signature"
        with self.assertRaisesRegex(TypeError, gives.format("list")):
            numbers.interleave(lambda x: [x, x])
        for call in (numbers.interleave, numbers.flat_map):
            with self.assertRaisesRegex(TypeError, gives.format("Expr")):
                call(lambda x: x + 1)
        with self.assertRaisesRegex(TypeError, gives.format("Expr")):
            numbers.interleave(ps.py_function(collatz, INT))
        # Both remedies work.
        counts = numbers.map(lambda x: int(x) if x > 1 else 1, output_signature=INT)
        self.assertEqual(read(counts.interleave(lambda n: ps.Dataset.range(n))), [0, 0, 0, 1])
        yielded = numbers.flat_map(lambda x: range(x) if x > 1 else [7], output_signature=INT)
        self.assertEqual(read(yielded), [7, 7, 0, 1])

    def test_without_a_signature_the_error_says_what_to_do(self):
        with self.assertRaisesRegex(TypeError, "output_signature"):
            ps.Dataset.range(3).map(collatz)
        with self.assertRaisesRegex(TypeError, "output_signature"):
            ps.Dataset.range(3).map(ps.py_function(collatz))

    def test_a_result_that_is_not_as_promised_is_python_s(self):
        ds = ps.Dataset.range(3).map(lambda x: x * 2, output_signature=ps.TensorSpec((), "float32"))
        self.assertIn("by cloudpickle", ds.explain())
        self.assertEqual([(x.dtype, x) for x in read(ds)], [("float32", 0), ("float32", 2), ("float32", 4)])

    def test_equal_functions_are_equal_datasets(self):
        def dataset(function, **options):
            return ps.Dataset.range(3).map(ps.py_function(function, INT, **options)).fingerprint

        self.assertEqual(dataset(collatz), dataset(collatz))
        self.assertNotEqual(dataset(collatz), dataset(lambda x: x))
        self.assertNotEqual(dataset(collatz, version=1), dataset(collatz, version=2))

        def made(y):
            def inner(x):
                return x + y

            return inner

        self.assertNotEqual(dataset(made(1)), dataset(made(2)))
        self.assertEqual(dataset(made(1), version=1), dataset(made(2), version=1))


class Local(unittest.TestCase):
    def test_tensorflows_py_function_and_numpy_function(self):
        def steps(x, name):
            return len(name.numpy()) + (x.numpy() // 2 if x % 2 == 0 else 3 * x.numpy() + 1)

        def both(x):
            return [x + 1, np.float32(x) / 2]

        names = tf.data.Dataset.from_tensor_slices([b"a", b"bc"])
        ds = tf.data.Dataset.zip((tf.data.Dataset.range(2), names))
        one = ds.map(lambda x, name: tf.py_function(steps, [x, name], tf.int64))
        self.assertEqual(one.element_spec, tf.TensorSpec(None, tf.int64))
        self.assertEqual(read(one), [1, 6])
        self.assertIn(".steps' by cloudpickle", one.explain())
        for function in (tf.py_function, tf.numpy_function):
            two = tf.data.Dataset.range(2).map(lambda x: tuple(function(both, [x], [tf.int64, tf.float32])))
            self.assertEqual(read(two), [(1, 0.0), (2, 0.5)])
        self.assertEqual(list(inspect.signature(tf.py_function).parameters), ["func", "inp", "Tout", "name"])
        self.assertEqual(
            str(inspect.signature(tf.numpy_function)), "(func=None, inp=None, Tout=None, stateful=True, name=None)"
        )

    def test_a_function_with_an_if(self):
        ds = ps.Dataset.range(1000).map(collatz, output_signature=INT)
        self.assertEqual(read(ds), [collatz(x) for x in range(1000)])

    def test_nests_arrays_and_strings(self):
        Point = collections.namedtuple("Point", "x y")

        def f(p, d):
            assert isinstance(d["s"], bytes) and d["names"].dtype == object and p._fields == ("x", "y")
            return {
                "b": p.x + p.y.sum(),
                "a": (d["s"] + b"!", [d["names"][1], "é"], np.float64(0.5)),
                "empty": np.zeros((0, 2)),
            }

        elements = (Point(np.arange(4), np.ones((4, 2, 3), "float32")), {"s": ["a", "", "cd", "e"], "names": [["x", "yz"]] * 4})
        signature = {
            "b": ps.TensorSpec((), "float32"),
            "a": (ps.TensorSpec((), "string"), ps.TensorSpec((2,), "string"), ps.TensorSpec((), "float32")),
            "empty": ps.TensorSpec((None, 2), "int32"),
        }
        ds = ps.Dataset.from_tensor_slices(elements).map(f, output_signature=signature)
        self.assertEqual(ds.element_spec, signature)
        got = read(ds)
        self.assertEqual([g["b"] for g in got], [6, 7, 8, 9])
        self.assertEqual([g["a"][0] for g in got], [b"a!", b"!", b"cd!", b"e!"])
        self.assertEqual(got[0]["a"][1].tolist(), [b"yz", "é".encode()])
        self.assertEqual(got[0]["empty"].shape, (0, 2))

    def test_large_elements_grow_the_shared_memory(self):
        ds = ps.Dataset.range(5).map(
            ps.py_function(lambda x: np.full((300_000 * int(x),), x), ps.TensorSpec((None,), "int64"))
        ).map(ps.py_function(lambda a: a * 2, ps.TensorSpec((None,), "int64")))
        for i, array in enumerate(read(ds)):
            self.assertEqual((len(array), set(array.tolist())), (300_000 * i, {2 * i} if i else set()))

    def test_arrays_that_a_function_keeps_stay_as_they_are(self):
        def keeping(x, kept=[]):
            kept.append(x)
            return np.array([a[0] for a in kept[-3:]])

        ps.set_python_processes(1)
        self.addCleanup(ps.set_python_processes, len(os.sched_getaffinity(0)))
        ds = ps.Dataset.range(6).batch(1).map(ps.py_function(keeping, ps.TensorSpec((None,), "int64")), num_parallel_calls=1)
        self.assertEqual([a.tolist() for a in read(ds)], [[0], [0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]])

    def test_inside_a_traced_function(self):
        half = ps.py_function(collatz, INT)
        self.assertEqual(read(ps.Dataset.range(4).map(lambda x: half(x + 1) * 10)), [40, 10, 100, 20])
        self.assertEqual(half(8), 4)

    def test_filter_take_while_and_flat_map(self):
        def odd(x):
            return bool(x % 2)

        def repeated(x):
            for i in range(int(x)):
                yield x, f"{x}{i}"

        self.assertEqual(read(ps.Dataset.range(6).filter(odd)), [1, 3, 5])
        self.assertEqual(read(ps.Dataset.range(6).take_while(lambda x: not x > 2)), [0, 1, 2])
        ds = ps.Dataset.range(4).flat_map(repeated, output_signature=(INT, ps.TensorSpec((), "string")))
        self.assertEqual(read(ds), [(1, b"10"), (2, b"20"), (2, b"21"), (3, b"30"), (3, b"31"), (3, b"32")])

    def test_an_error_names_function_element_and_line(self):
        def picky(x):
            if x == 3:
                raise ValueError("no threes")
            return x

        iterator = iter(ps.Dataset.range(5).map(picky, output_signature=INT))
        got = []
        with self.assertRaises(ps.errors.InvalidArgumentError) as caught:
            while True:
                got.append(next(iterator).numpy())
        self.assertEqual(got, [0, 1, 2])
        line = picky.__code__.co_firstlineno + 2
        for part in ("element 3", "picky", "raised ValueError: no threes", f"line {line}, in picky"):
            self.assertIn(part, str(caught.exception))
        self.assertEqual([x.numpy() for x in iterator], [4])

    def test_results_that_break_the_promise_say_so(self):
        cases = [
            (lambda x: 1.5, INT, "float64; output_signature has int64"),
            (lambda x: 2**40, ps.TensorSpec((), "int32"), "int32 of output_signature cannot hold"),
            (lambda x: (x, x), INT, "different"),
            (lambda x: np.zeros(3), ps.TensorSpec((2,), "float64"), r"dims \[3\]"),
            (lambda x: {"b": x}, {"a": INT}, "a dict of"),
            (lambda x: None, ps.TensorSpec((), "string"), "NoneType"),
        ]
        for function, signature, words in cases[:2] + cases[3:]:
            with self.assertRaisesRegex(ps.errors.InvalidArgumentError, words):
                read(ps.Dataset.range(1).map(ps.py_function(function, signature)))

    def test_leaving_the_process_is_an_error_of_the_element(self):
        def leaving(x):
            if x == 2:
                sys.exit("enough")
            if x == 4:
                os.kill(os.getpid(), signal.SIGSEGV)
            return x

        iterator = iter(ps.Dataset.range(6).map(leaving, output_signature=INT))
        got, errors = [], []
        while True:
            try:
                got.append(next(iterator).numpy())
            except StopIteration:
                break
            except ps.errors.Error as error:
                errors.append(error)
        self.assertEqual(got, [0, 1, 3, 5])
        self.assertRegex(str(errors[0]), r"(?s)raised SystemExit: enough.*element 2$")
        self.assertRegex(str(errors[1]), r"ended, and so did the next one, which was killed by signal 11.*element 4$")

    def test_many_functions_one_after_another(self):
        # More than a process keeps (kMostFunctions in process.cc); the first is used again.
        first = ps.Dataset.range(2).map(ps.py_function(lambda x: x + 1000, INT))
        self.assertEqual(read(first), [1000, 1001])
        for i in range(300):
            ds = ps.Dataset.range(1).map(ps.py_function(lambda x, i=i: x + i, INT))
            self.assertEqual(read(ds), [i])
        self.assertEqual(read(first), [1000, 1001])

    def test_a_process_that_is_killed_costs_nothing(self):
        iterator = iter(ps.Dataset.range(400).map(ps.py_function(collatz, INT), num_parallel_calls=2))
        got = []
        for i in range(400):
            if i % 100 == 50:
                kill_children()
            got.append(next(iterator).numpy())
        self.assertEqual(got, [collatz(x) for x in range(400)])

    def test_positions_are_saved_and_restored(self):
        ds = ps.Dataset.range(20).map(ps.py_function(collatz, INT)).batch(3)
        iterator = iter(ds)
        next(iterator)
        state = iterator.save()
        rest = [batch.numpy().tolist() for batch in iterator]
        again = iter(ds)
        again.restore(state)
        self.assertEqual([batch.numpy().tolist() for batch in again], rest)

    def test_nondeterministic_functions_decide_nothing(self):
        drawn = ps.py_function(lambda x: np.random.rand() < 0.5, ps.TensorSpec((), "bool"), deterministic=False)
        with self.assertRaisesRegex(ValueError, "not deterministic"):
            ps.Dataset.range(3).filter(drawn)


class Generators(unittest.TestCase):
    def test_elements_are_the_yielded_values(self):
        def pairs():
            for i in range(5):
                yield {"n": i, "a": [i] * 2}

        signature = {"n": ps.TensorSpec((), "int32"), "a": ps.TensorSpec((2,), "float32")}
        ds = ps.Dataset.from_generator(pairs, output_signature=signature)
        self.assertEqual(ds.element_spec, signature)
        self.assertEqual([(e["n"], e["a"].tolist()) for e in read(ds)], [(i, [i, i]) for i in range(5)])
        self.assertEqual(len(read(ds.repeat(3))), 15)
        self.assertIn("by cloudpickle", ds.explain())

    def test_arguments_and_older_ways_to_say_the_signature(self):
        ds = ps.Dataset.from_generator(lambda n, a: (x * n for x in a), ps.int64, args=(3, [1, 2]))
        self.assertEqual(read(ds), [3, 6])
        with self.assertRaisesRegex(ValueError, "output_signature"):
            ps.Dataset.from_generator(range)
        with self.assertRaises(TypeError):
            ps.Dataset.from_generator(iter([1]), output_signature=INT)

    def test_a_generator_that_kills_its_process_is_an_error(self):
        def numbers():
            yield from range(3)
            os.kill(os.getpid(), signal.SIGKILL)

        iterator = iter(ps.Dataset.from_generator(numbers, output_signature=INT))
        self.assertEqual([int(next(iterator)) for _ in range(3)], [0, 1, 2])
        with self.assertRaisesRegex(ps.errors.InternalError, "killed by signal 9"):
            next(iterator)
        self.assertEqual(list(iterator), [])

    def test_arguments_go_by_value_with_the_generators_module(self):
        with unittest.mock.patch.dict(sys.modules):
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "here_alone.py").write_text("def numbers(n):\n    yield from range(n)\n")
                with unittest.mock.patch.object(sys, "path", [*sys.path, folder]):
                    import here_alone
            ds = ps.Dataset.from_generator(here_alone.numbers, output_signature=INT, args=(3,), by_value=True)
            self.assertIn("here_alone:numbers", ds.explain())
            self.assertEqual(read(ds), [0, 1, 2])

    def test_a_position_is_a_count(self):
        ds = ps.Dataset.from_generator(lambda: range(50), output_signature=INT)
        iterator = iter(ds)
        for _ in range(20):
            next(iterator)
        state = iterator.save()
        kill_children()
        self.assertEqual([x.numpy() for x in iterator], list(range(20, 50)))
        again = iter(ds)
        again.restore(state)
        self.assertEqual([x.numpy() for x in again], list(range(20, 50)))

    def test_an_error_stands_in_its_place_and_ends_it(self):
        def failing():
            yield 1
            raise RuntimeError("the disk is gone")

        iterator = iter(ps.Dataset.from_generator(failing, output_signature=INT))
        self.assertEqual(next(iterator).numpy(), 1)
        with self.assertRaisesRegex(ps.errors.UnknownError, "failing.*raised RuntimeError: the disk is gone"):
            next(iterator)
        self.assertEqual(list(iterator), [])

    def test_several_at_a_time_beside_maps(self):
        one = ps.Dataset.from_generator(lambda: range(30), output_signature=INT)
        both = ps.Dataset.zip(one, one.map(ps.py_function(collatz, INT)))
        self.assertEqual(read(both), [(x, collatz(x)) for x in range(30)])


class Cluster:
    """A dispatcher here, and workers in processes of their own with Python processes beside them."""

    def __init__(self, *flags, workers=2, path="", python=2):
        self._stack = contextlib.ExitStack()
        self.dispatcher = service.DispatchServer(
            service.DispatcherConfig(worker_timeout_ms=2000, heartbeat_interval_ms=100)
        )
        self._stack.callback(self.dispatcher.stop)
        self.target = self.dispatcher.target
        python = ["--python", str(python), "--python-command", sys.executable] if python else []
        command = [
            os.environ["PENSTOCK_COMMAND"], "worker", "--dispatcher-address", self.dispatcher._address,
            "--heartbeat-interval-ms", "100", *python, *flags,
        ]
        self.workers = []
        for _ in range(workers):
            worker = subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
            )
            self._stack.callback(self._end, worker)
            self.workers.append(worker)
        for worker in self.workers:
            assert "ready" in worker.stdout.readline()

    @staticmethod
    def _end(worker):
        worker.kill()
        worker.wait()
        worker.stdout.close()

    def distribute(self, dataset, **options):
        return dataset.distribute("distributed_epoch", self.target, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()


class OnWorkers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        (pathlib.Path(cls.folder.name) / "ours.py").write_text(MODULE)
        sys.path.insert(0, cls.folder.name)
        cls.addClassCleanup(sys.path.remove, cls.folder.name)
        import ours

        cls.ours = ours

    def test_by_import_path_and_by_value(self):
        with Cluster(path=self.folder.name) as cluster:
            for function, way in ((self.ours.collatz, "by import path"), (collatz, "by cloudpickle")):
                ds = ps.Dataset.range(500).map(function, output_signature=INT)
                self.assertIn(way, ds.explain())
                self.assertEqual(sorted(read(cluster.distribute(ds))), sorted(map(collatz, range(500))))

    def test_a_worker_that_is_killed_loses_and_doubles_nothing(self):
        def record(x):
            return x if x % 2 == 0 else x * 1

        with Cluster() as cluster:
            ds = ps.Dataset.range(3000).map(record, output_signature=INT)
            got = []
            for x in cluster.distribute(ds):
                got.append(int(x.numpy()))
                if len(got) == 200:
                    cluster.workers[0].kill()
        lost = set(range(3000)) - set(got)
        doubled = [x for x, count in collections.Counter(got).items() if count > 1]
        self.assertEqual((len(lost), len(doubled)), (0, 0))

    def test_an_error_names_function_element_and_remote_line(self):
        with Cluster(workers=1, path=self.folder.name) as cluster:
            ds = ps.Dataset.range(20).map(ps.py_function(self.ours.checked, INT))
            got, errors = [], []
            iterator = iter(cluster.distribute(ds))
            while True:
                try:
                    got.append(next(iterator).numpy())
                except StopIteration:
                    break
                except ps.errors.InvalidArgumentError as error:
                    errors.append(str(error))
        self.assertEqual(sorted(got), [x for x in range(20) if x != 13])
        line = 1 + MODULE.splitlines().index('        raise ValueError(f"bad luck: {x}")')
        self.assertEqual(len(errors), 1)
        for part in ("element 13", "'ours:checked'", "bad luck: 13", f'ours.py", line {line}, in checked'):
            self.assertIn(part, errors[0])

    def test_a_module_that_is_not_there_is_named(self):
        with Cluster(workers=1) as cluster:
            ds = cluster.distribute(ps.Dataset.range(1).map(ps.py_function(self.ours.collatz, INT)))
            with self.assertRaisesRegex(ps.errors.FailedPreconditionError, "'ours:collatz' cannot be imported.*by_value=True"):
                read(ds)
            whole = ps.Dataset.range(4).map(ps.py_function(self.ours.collatz, INT, by_value=True))
            self.assertEqual(read(cluster.distribute(whole)), [collatz(x) for x in range(4)])

    def test_refused_unless_the_operator_allows_it(self):
        ds = ps.Dataset.range(4).map(collatz, output_signature=INT)
        with Cluster(workers=1, python=0) as cluster:
            with self.assertRaisesRegex(ps.errors.PermissionDeniedError, "--python N.*collatz"):
                read(cluster.distribute(ds))
            generated = ps.Dataset.from_generator(lambda: range(3), output_signature=INT)
            with self.assertRaisesRegex(ps.errors.PermissionDeniedError, "--python N"):
                read(cluster.distribute(generated))
        with Cluster("--python-allow", "ours", "--python-path", self.folder.name, workers=1) as cluster:
            with self.assertRaisesRegex(ps.errors.PermissionDeniedError, "by value.*python-allow.*ours"):
                read(cluster.distribute(ds))
            with self.assertRaisesRegex(ps.errors.PermissionDeniedError, "python-allow.*ours"):
                read(cluster.distribute(ps.Dataset.range(1).map(ps.py_function(os.path.getsize, INT))))
            # Names that the module has imported are not the module's own.
            with unittest.mock.patch("penstock.functions._ship", return_value=("ours:np.save", b"")):
                imported = ps.Dataset.range(1).map(ps.py_function(self.ours.collatz, INT))
            with self.assertRaisesRegex(ps.errors.PermissionDeniedError, "'ours:np.save' is not defined in"):
                read(cluster.distribute(imported))
            allowed = ps.Dataset.range(4).map(ps.py_function(self.ours.collatz, INT))
            self.assertEqual(read(cluster.distribute(allowed)), [collatz(x) for x in range(4)])

    def test_a_worker_without_the_interpreter_does_not_start(self):
        command = [os.environ["PENSTOCK_COMMAND"], "worker", "--dispatcher-address", "localhost:1", "--python", "1"]
        ended = subprocess.run([*command, "--python-command", "/nowhere/python3"], capture_output=True, text=True)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("--python-command", ended.stderr)

    def test_a_generator_is_read_once_by_several_workers(self):
        with Cluster(path=self.folder.name) as cluster:
            ds = ps.Dataset.from_generator(self.ours.numbers, output_signature=INT)
            got = []
            for x in cluster.distribute(ds):
                got.append(int(x.numpy()))
                if len(got) == 20:
                    cluster.workers[0].kill()
            self.assertEqual(sorted(got), list(range(100)))

    def test_workers_in_this_process_run_python_by_their_own_config(self):
        by_path = ps.Dataset.range(9).map(ps.py_function(self.ours.collatz, INT))
        by_value = ps.Dataset.range(9).map(collatz, output_signature=INT)

        def read_by(ds, **config):
            with service.DispatchServer() as dispatcher:
                with service.WorkerServer(service.WorkerConfig(dispatcher._address, **config)):
                    return read(ds.distribute("distributed_epoch", dispatcher.target))

        wanted = [collatz(x) for x in range(9)]
        self.assertEqual(read_by(by_path, python=1), wanted)
        self.assertEqual(read_by(by_value, python=1), wanted)
        # This program has its own processes, not its workers'.
        self.assertEqual(read(by_value), wanted)
        with self.assertRaisesRegex(ps.errors.PermissionDeniedError, "setting python"):
            read_by(by_value)
        self.assertEqual(read_by(by_path, python=1, python_allow=["ours"]), wanted)
        with self.assertRaisesRegex(ps.errors.PermissionDeniedError, "by value.*python-allow.*ours"):
            read_by(by_value, python=1, python_allow=["ours"])
        with self.assertRaisesRegex(ps.errors.FailedPreconditionError, "cannot be imported"):
            read_by(by_path, python=1, python_path=[])
        with self.assertRaisesRegex(ps.errors.NotFoundError, "/nowhere/python3"):
            read_by(by_path, python=1, python_command="/nowhere/python3")
        with self.assertRaisesRegex(ps.errors.InvalidArgumentError, "python is -1"):
            read_by(by_path, python=-1)


if __name__ == "__main__":
    unittest.main()
