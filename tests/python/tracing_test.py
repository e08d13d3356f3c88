# SPDX-License-Identifier: Apache-2.0
"""Functions that are traced give what the same function gives NumPy's arrays."""
import unittest

import numpy as np
import penstock as ps


def through(function, *arrays):
    """function's results over the rows of `arrays`, by a dataset."""
    dataset = ps.Dataset.from_tensor_slices(tuple(arrays)).map(function)
    return list(dataset.as_numpy_iterator())


def by_numpy(function, *arrays):
    return [function(*rows) for rows in zip(*arrays)]


FLOATS = np.array([[0.3, -1.5, 2.25], [4.0, 0.5, -0.75]], dtype=np.float64)
POSITIVE = np.abs(FLOATS)
INTEGERS = np.array([[3, -7, 12], [5, 1, -2]], dtype=np.int64)
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

    def test_numpys_functions_of_one_array(self):
        for function in (
            np.negative, np.absolute, np.sign, np.floor, np.ceil, np.rint, np.exp, np.expm1, np.sin, np.cos, np.tan,
            np.arctan, np.sinh, np.cosh, np.tanh, np.isnan, np.isinf, np.isfinite, np.sum, np.mean, np.prod, np.max,
            np.min, np.sort, np.argsort, np.argmax, np.argmin, np.transpose,
        ):  # fmt: skip
            self.same(lambda x: function(x), FLOATS)
        for function in (np.sqrt, np.log, np.log1p):
            self.same(lambda x: function(x), POSITIVE)
        for function in (np.arcsin, np.arccos):
            self.same(lambda x: function(x), FLOATS / 5)
        for function in (np.any, np.all, np.logical_not, np.invert):
            self.same(lambda x: function(x), BOOLS)

    def test_numpys_functions_of_two(self):
        for function in (
            np.add, np.subtract, np.multiply, np.true_divide, np.floor_divide, np.remainder, np.equal, np.not_equal,
            np.less, np.less_equal, np.greater, np.greater_equal, np.minimum, np.maximum, np.arctan2,
        ):  # fmt: skip
            self.same(lambda x, y: function(x, y), FLOATS, FLOATS[::-1].copy())
        self.same(lambda x, y: np.power(x, y), POSITIVE, FLOATS)
        for function in (np.bitwise_and, np.bitwise_or, np.bitwise_xor):
            self.same(lambda x, y: function(x, y), INTEGERS, INTEGERS[::-1].copy())
        for function in (np.logical_and, np.logical_or):
            self.same(lambda x, y: function(x, y), BOOLS, BOOLS[::-1].copy())
        for function in (np.left_shift, np.right_shift):
            self.same(lambda x: function(x, 2), INTEGERS)
        self.same(lambda x, y: np.matmul(x, y), np.stack([FLOATS] * 2), np.stack([FLOATS.T] * 2))

    def test_numpys_functions_of_shapes(self):
        blocks = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        for function in (
            lambda x: np.reshape(x, (4, 3)),
            lambda x: np.reshape(x, -1),
            lambda x: np.expand_dims(x, 1),
            lambda x: np.squeeze(np.expand_dims(x, 0)),
            lambda x: np.transpose(x, (1, 0)),
            lambda x: np.concatenate([x, x + 1], axis=1),
            lambda x: np.stack([x, x]),
            lambda x: np.take(x, [2, 0], axis=0),
            lambda x: np.take(x, 5),
            lambda x: np.tile(x, (1, 2)),
            lambda x: np.flip(x, 1),
            lambda x: np.clip(x, 3, 9),
            lambda x: np.where(x > 6, x, -x),
            lambda x: np.sum(x, axis=1),
            lambda x: np.max(x, axis=(0, 1), keepdims=True),
            lambda x: np.argmax(x, axis=1),
            lambda x: np.sort(-x, axis=0),
        ):
            self.same(function, blocks)

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

    def test_strings(self):
        words = np.array(["ab", "c"])
        self.assertEqual(through(lambda x: x + "!", words), [b"ab!", b"c!"])
        self.assertEqual(through(lambda x: "<" + x, words), [b"<ab", b"<c"])
        self.assertEqual(through(lambda x: ps.ops.string_length(x), words), [2, 1])
        self.assertEqual(through(lambda x: x == "c", words), [False, True])
        self.assertEqual(through(lambda x: ps.ops.string_to_number(x, ps.int64), np.array(["7"])), [7])


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

    def test_what_cannot_be_traced_says_so(self):
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


if __name__ == "__main__":
    unittest.main()
