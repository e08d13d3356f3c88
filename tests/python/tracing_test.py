# SPDX-License-Identifier: Apache-2.0
"""Traced functions give the same results as the same functions on NumPy's arrays."""
import datetime
import pathlib
import random
import re
import sys
import threading
import time
import unittest
import uuid
import warnings

import numpy as np
import penstock as ps


def through(function, *arrays):
    """Returns the function's results over the rows of `arrays`, through a dataset."""
    dataset = ps.Dataset.from_tensor_slices(tuple(arrays)).map(function)
    return list(dataset.as_numpy_iterator())


def by_numpy(function, *arrays):
    return [function(*rows) for rows in zip(*arrays)]


FLOATS = np.array([[0.3, -1.5, 2.25], [4.0, 0.5, -0.75]], dtype=np.float64)
POSITIVE = np.abs(FLOATS)
INTEGERS = np.array([[3, -7, 12], [5, 1, -2]], dtype=np.int64)
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "tracing.md"
BOOLS = np.array([[True, False, True], [False, False, True]])


class BesideNumpy(unittest.TestCase):
    def same(self, function, *arrays):
        ours, theirs = through(function, *arrays), by_numpy(function, *arrays)
        self.assertEqual(len(ours), len(theirs))
        for a, b in zip(ours, theirs):
            np.testing.assert_allclose(a, b, rtol=1e-12)
            self.assertEqual(np.asarray(a).dtype, np.asarray(b).dtype, function)
            self.assertEqual(np.shape(a), np.shape(b))

    def test_operators(self):
        for function in (
            lambda x: x + 1,
            lambda x: 1 - x,
            lambda x: x * x / 2,
            lambda x: 2 / (x * x + 1),
            lambda x: x // 0.5,
            lambda x: x % 0.7,
            lambda x: x**2,
            lambda x: -x,
            lambda x: abs(x),
            lambda x: x > 0.4,
            lambda x: (x > 0.4) & (x < 3) | ~(x != 0.5),
            lambda x: (x > 0.4) ^ (x < 3),
            lambda x: 3 <= x,
            lambda x: x == 0.5,
        ):
            self.same(function, FLOATS)
        for function in (
            lambda x: x / 2,
            lambda x: 6 / (x * x),
            lambda x: x // 2,
            lambda x: -7 // x,
            lambda x: x % 5,
            lambda x: x & 6 | 1,
            lambda x: x ^ 5,
            lambda x: ~x,
            lambda x: x << 2 >> 1,
            lambda x: x * np.int64(3),
            lambda x: x + np.array([1, 2, 3]),
            lambda x: np.array([1, 2, 3]) - x,
        ):
            self.same(function, INTEGERS)
        self.same(lambda x, y: x @ y, np.stack([FLOATS] * 2), np.stack([FLOATS.T] * 2))

    def test_methods_and_places(self):
        blocks = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
        for function in (
            lambda x: x[0],
            lambda x: x[-1],
            lambda x: x[1:],
            lambda x: x[:, 1],
            lambda x: x[..., -1],
            lambda x: x[::2, ::-1],
            lambda x: x[None, 1, :, None],
            lambda x: x[1, 2],
            lambda x: x.reshape(2, 6),
            lambda x: x.sum(axis=0),
            lambda x: x.T,
            lambda x: x.max(),
            lambda x: x.astype(np.int8),
        ):
            self.same(function, blocks)
        self.assertEqual(through(lambda x, i: x[i], blocks, np.array([2, 0]))[1].tolist(), blocks[1][0].tolist())

    def test_filled(self):
        fill = ps.ops.fill
        self.assertEqual(through(lambda x: fill([2, 2], x), np.array([5.5]))[0].tolist(), [[5.5, 5.5]] * 2)
        self.assertEqual([x.tolist() for x in through(lambda n: fill([n], n), np.array([2, 0]))], [[2, 2], []])
        self.assertEqual(through(lambda n: fill((n, 2), "s"), np.array([1]))[0].tolist(), [[b"s", b"s"]])
        self.assertEqual(through(lambda x: fill(ps.ops.shape_of(x), 0), np.ones((1, 2, 3)))[0].tolist(), [[0] * 3] * 2)

    def test_strings(self):
        words = np.array(["ab", "c"])
        self.assertEqual(through(lambda x: x + "!", words), [b"ab!", b"c!"])
        self.assertEqual(through(lambda x: "<" + x, words), [b"<ab", b"<c"])
        self.assertEqual(through(lambda x: ps.ops.string_length(x), words), [2, 1])
        self.assertEqual(through(lambda x: x == "c", words), [False, True])
        self.assertEqual(through(lambda x: ps.ops.string_to_number(x, ps.int64), np.array(["7"])), [7])


class NumpysFunctions(unittest.TestCase):
    """The table of docs/tracing.md."""

    def rows(self):
        for line in PAGE.read_text().splitlines():
            if line.startswith("| `np."):
                name, examples = line.split("|")[1:3]
                yield name.strip(" `")[len("np.") :], re.findall("`([^`]+)`", examples)

    def test_the_table_has_what_can_be_traced(self):
        self.assertEqual({getattr(np, name) for name, _ in self.rows()}, set(ps.expr.NUMPY))

    def test_each_example_gives_what_numpy_gives(self):
        blocks = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        values = {"x": FLOATS, "y": FLOATS[::-1], "i": INTEGERS, "j": INTEGERS[::-1], "b": BOOLS, "c": BOOLS[::-1]}
        values["m"] = blocks
        names, arrays = list(values), [np.ascontiguousarray(array) for array in values.values()]
        for name, examples in self.rows():
            self.assertTrue(any(f"np.{name}(" in example for example in examples), name)
            for example in examples:
                with self.subTest(example):
                    function = eval(f"lambda {', '.join(names)}: {example}", {"np": np})
                    traced, expected = through(function, *arrays), by_numpy(function, *arrays)
                    self.assertEqual(len(traced), len(expected))
                    for ours, theirs in zip(traced, expected):
                        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
                        self.assertEqual((ours.dtype, ours.shape), (theirs.dtype, theirs.shape))


class Tracing(unittest.TestCase):
    def test_a_function_is_called_once(self):
        calls = []

        def function(x):
            calls.append(x)
            return x + 1

        dataset = ps.Dataset.range(5).map(function)
        self.assertEqual([int(x) for x in dataset], [1, 2, 3, 4, 5])
        self.assertEqual(len(calls), 1)
        self.assertEqual((calls[0].dtype, calls[0].shape, calls[0].ndim), (ps.int64, (), 0))

    def test_literals_take_the_dtype_they_meet(self):
        dataset = ps.Dataset.from_tensor_slices(np.arange(3, dtype=np.int8)).map(lambda x: x * 2)
        self.assertEqual(dataset.element_spec.dtype, ps.int8)
        with self.assertRaises(ValueError):
            ps.Dataset.range(3).map(lambda x: x * 1.5)

    def test_values_cannot_be_looked_at(self):
        for look in (lambda x: x if x > 1 else -x, lambda x: float(x), lambda x: [y for y in x], lambda x: len(x)):
            with self.assertRaisesRegex(TypeError, "traced"):
                ps.Dataset.range(3).map(look)

    def test_an_expression_has_no_text_and_no_hash(self):
        for look in (str, hash, "{}".format, "{:>9}".format, lambda x: f"img_{x}", lambda x: "%s" % x,
                     {1: 2}.get, lambda x: x in {1, 2}):
            with self.assertRaisesRegex(TypeError, "has no value while its function is traced"):
                ps.Dataset.range(3).map(lambda x, look=look: [look(x), x][1])

    def test_texts_and_tables_give_what_python_gives(self):
        for function in (lambda x: f"img_{x}", lambda x: {1: "one"}.get(int(x), "none")):
            made = ps.Dataset.range(3).map(function, output_signature=ps.TensorSpec((), ps.string))
            self.assertEqual([bytes(text).decode() for text in made.as_numpy_iterator()],
                             [function(x) for x in range(3)])

    def test_untraceable_functions_are_named(self):
        with self.assertRaisesRegex(TypeError, "np.fft|np.gcd|cannot be traced"):
            ps.Dataset.range(3).map(lambda x: np.gcd(x, 2))
        with self.assertRaisesRegex(TypeError, "cannot be traced"):
            ps.Dataset.range(3).map(lambda x: np.median(x))

    def test_dtypes_that_do_not_fit_name_operation_and_argument(self):
        pairs = ps.Dataset.from_tensor_slices((np.zeros(2, np.float32), np.zeros(2, np.int64)))
        with self.assertRaisesRegex(ValueError, "Add.*float32.*int64"):
            pairs.map(lambda a, b: a + b)
        with self.assertRaisesRegex(TypeError, "member"):
            pairs.map(lambda *x: ps.expr.as_expr(x) + 1)

    def test_lists_become_tensors(self):
        self.assertEqual([x.numpy().tolist() for x in ps.Dataset.range(2).map(lambda x: [x, x + 1])], [[0, 1], [1, 2]])

    def test_draws_depend_on_the_seed_alone(self):
        dataset = ps.Dataset.range(4).map(lambda x: ps.ops.random_uniform([2]))

        def draw(seed):
            return [x.numpy().tolist() for x in dataset.iterator(seed=seed)]

        self.assertEqual(draw(1), draw(1))
        self.assertNotEqual(draw(1), draw(2))


class TracedByThreads(unittest.TestCase):
    def test_at_once(self):
        # Each thread interrupts the other in the middle of its conversions.
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)
        failed = []

        def trace():
            try:
                for _ in range(200):
                    ps.Dataset.range(1).map(lambda x: ps.ops.where((x + 1) * 2 < 3, 0.5, 1.5))
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=trace) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])


class VolatileCalls(unittest.TestCase):
    """A value that changes from call to call is one constant in a traced function, and a warning says so."""

    def test_clocks_and_draws_warn_and_name_the_way_out(self):
        generator = np.random.default_rng(1)
        for says, function in {
            "time.time": lambda x: x + time.time(),
            "perf_counter_ns": lambda x: x + time.perf_counter_ns() * 1.0,
            "datetime.now": lambda x: x + datetime.datetime.now().microsecond * 1.0,
            "module random": lambda x: x + random.random(),
            "module random.*once": lambda x: x + float(random.randint(1, 6)),
            "NumPy.*py_function": lambda x: x + np.random.rand(),
            "NumPy.*random_uniform": lambda x: x + generator.normal(),
            "urandom": lambda x: x + float(uuid.uuid4().int % 7),
        }.items():
            with self.assertWarnsRegex(ps.errors.VolatileCallWarning, says) as caught:
                ps.Dataset.range(3).map(lambda x: x.astype("float64")).map(function)
            self.assertEqual(caught.filename, __file__)

    def test_in_every_function_of_a_dataset(self):
        ds = ps.Dataset.range(3)

        def draws(*args):
            return args[0] + random.randint(1, 6)

        for build in (
            lambda: ds.filter(lambda x: x > random.randint(0, 1)),
            lambda: ds.scan(np.int64(0), lambda state, x: (draws(state), x)),
            lambda: ds.reduce(np.int64(0), draws),
            lambda: ds.flat_map(lambda x: ps.Dataset.from_tensor_slices(draws(x) + np.zeros(2, np.int64))),
        ):
            with self.assertWarns(ps.errors.VolatileCallWarning):
                build()

    def test_calls_that_are_no_constant_are_silent(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ps.errors.VolatileCallWarning)
            ds = ps.Dataset.range(3)
            ds.map(lambda x: ps.ops.random_uniform(()) + ps.ops.cast(x, "float32"))
            ds.map(ps.py_function(lambda x: x + random.random(), output_signature=ps.TensorSpec((), "float64")))
            # Not traced after all, but run by Python for each element.
            ds.map(lambda x: float(x) + random.random(), output_signature=ps.TensorSpec((), "float64"))

    def test_a_profiler_is_left_alone(self):
        calls = []
        sys.setprofile(lambda frame, event, call: calls.append(event))
        try:
            watch = sys.getprofile()
            ps.Dataset.range(3).map(lambda x: x + 1)
            self.assertIs(sys.getprofile(), watch)
        finally:
            sys.setprofile(None)
        self.assertIn("c_call", calls)


if __name__ == "__main__":
    unittest.main()
