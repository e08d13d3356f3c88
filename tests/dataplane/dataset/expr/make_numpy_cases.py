# SPDX-License-Identifier: Apache-2.0
"""Writes numpy_cases.txt: the results of NumPy, for numpy_cases_test.cc to compare.

    python3 make_numpy_cases.py > numpy_cases.txt

One case a line: operation, attributes, inputs, "=>", result. A tensor is its
dtype, its dims and its values (floating-point ones in hexadecimal, so that
nothing is lost; complex ones as two; strings in hexadecimal after an "x").
The row splits of a ragged tensor come before it, "ragged:0,2,3:0,1,1,4". An
operation with several outputs may name one, "TopK:1". Needs pyfarmhash.
"""
import language_cases
import numpy as np

rng = np.random.default_rng(20240607)
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]


def text(a):
    if isinstance(a, language_cases.Ragged):
        return "ragged:" + ":".join(",".join(map(str, level)) for level in a.splits) + " " + text(a.flat)
    a = np.asarray(a)
    dims = "[" + ",".join(map(str, a.shape)) + "]"
    if a.dtype.kind in "OSU":
        return f"string {dims} " + " ".join("x" + v.hex() for v in a.ravel())
    values = []
    for v in a.ravel():
        if a.dtype.kind == "c":
            values += [float(v.real).hex(), float(v.imag).hex()]
        elif a.dtype.kind == "f":
            values.append(float(v).hex())
        else:
            values.append(str(int(v)))
    return " ".join([a.dtype.name, dims] + values)


def attr_text(value):
    if isinstance(value, bytes):
        return "x" + value.hex()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def case(op, inputs, result, **attrs):
    attr = " ".join(f"{k}={attr_text(v)}" for k, v in attrs.items())
    print(" ; ".join([f"{op} {attr}".strip()] + [text(i) for i in inputs]), "=>", text(result))


def sample(dtype, shape):
    """Returns small and large values, with zeros and extremes where they are defined."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        info = np.iinfo(dtype)
        a = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        small = rng.integers(max(info.min, -9), 9, shape).astype(dtype)
        return np.where(rng.random(shape) < 0.5, a, small).astype(dtype)
    if kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return (rng.normal(size=shape) * 3).astype(dtype)


def nonzero(a):
    return np.where(a == 0, np.ones_like(a), a)


def specials(dtype):
    return np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, 3.0], dtype)


SHAPES = [((3,), (3,)), ((2, 3), (3,)), ((2, 1, 2), (3, 1)), ((), (2, 2)), ((4,), ()), ((1, 3), (2, 1)),
          ((0, 3), (1, 3)), ((), ())]


def binary():
    plain = {"Add": np.add, "Subtract": np.subtract, "Multiply": np.multiply}
    for n, dtype in enumerate(INTS + FLOATS + COMPLEX):
        for op, f in plain.items():
            for sa, sb in (SHAPES if n % 4 == 0 else SHAPES[:3]):
                a, b = sample(dtype, sa), sample(dtype, sb)
                case(op, [a, b], f(a, b))
    for dtype in INTS + FLOATS:
        for op, f in {"Minimum": np.minimum, "Maximum": np.maximum}.items():
            a, b = sample(dtype, (2, 3)), sample(dtype, (3,))
            case(op, [a, b], f(a, b))
        a, b = sample(dtype, (4, 5)), nonzero(sample(dtype, (5,)))
        case("Remainder", [a, b], np.remainder(a, b))
        case("Divide", [a, b], np.floor_divide(a, b) if dtype in INTS else np.divide(a, b))
    for dtype in FLOATS:
        a = specials(dtype)
        b = a[::-1].copy()
        for op, f in {"Minimum": np.minimum, "Maximum": np.maximum, "Divide": np.divide,
                      "Remainder": np.remainder, "Add": np.add, "Multiply": np.multiply}.items():
            case(op, [a, b], f(a, b))
            case(op, [a[:, None], b], f(a[:, None], b))
    for dtype in COMPLEX:
        a, b = sample(dtype, (2, 2)), sample(dtype, (2,))
        case("Divide", [a, b], np.divide(a, b))


def compare():
    ops = {"Equal": np.equal, "NotEqual": np.not_equal, "Less": np.less, "LessEqual": np.less_equal,
           "Greater": np.greater, "GreaterEqual": np.greater_equal}
    for dtype in INTS + FLOATS + ["bool"]:
        a, b = sample(dtype, (2, 4)), sample(dtype, (4,))
        b[0] = a[0, 0]
        for op, f in ops.items():
            case(op, [a, b], f(a, b))
    for dtype in FLOATS:
        a = specials(dtype)
        for op, f in ops.items():
            case(op, [a[:, None], a], f(a[:, None], a))
    for dtype in COMPLEX:
        a = sample(dtype, (3,))
        b = a.copy()
        b[1] += 1
        case("Equal", [a, b], a == b)
        case("NotEqual", [a, b], a != b)
    s = np.array([b"", b"a", b"ab", b"b", b"\xff"], object)
    for op, f in ops.items():
        case(op, [s.reshape(5, 1), s], f(s.reshape(5, 1), s).astype(bool))
    a, b = sample("bool", (3, 4)), sample("bool", (4,))
    case("And", [a, b], a & b)
    case("Or", [a, b], a | b)
    case("Not", [a], ~a)


def unary():
    for dtype in INTS + FLOATS + COMPLEX:
        a = sample(dtype, (2, 5))
        case("Negate", [a], -a)
        case("Abs", [a], np.abs(a))
    for dtype in FLOATS:
        for a in (sample(dtype, (7,)), specials(dtype)):
            for op, f in {"Exp": np.exp, "Log": np.log, "Sqrt": np.sqrt}.items():
                case(op, [a], f(a))
    for source in INTS + FLOATS + ["bool"]:
        for target in INTS + FLOATS + COMPLEX + ["bool"]:
            if np.dtype(source).kind == "f" and np.dtype(target).kind in "iu":
                a = np.array([0, 1.9, 100.5, 7], source)  # in the range of all dtypes
            elif target == "float16" and np.dtype(source).kind in "iu":
                a = np.array([0, 1, 2, 100], source)
            else:
                a = sample(source, (4,))
            case("Cast", [a], a.astype(target), dtype=target)


def shapes():
    for dtype in ["int32", "float64", "complex128", "bool", "uint8"]:
        a = sample(dtype, (2, 3, 4))
        case("Reshape", [a], a.reshape(4, -1), dims=[4, -1])
        case("Reshape", [a], a.reshape(24), dims=[24])
        case("ShapeOf", [a], np.array(a.shape, "int64"))
        case("Slice", [a], a[1:2, 0:3, 1:3], begin=[1, 0, 1], size=[1, -1, 2])
        case("Slice", [a], a[2:2, 1:, 4:], begin=[2, 1, 4], size=[0, -1, -1])
        for i in (0, 1, -1):
            case("Index", [a, np.int64(i)], a[i])
        for kind in ("int64", "int8", "uint16"):
            i = np.array([[1, 0], [1, 1]], kind)
            case("Gather", [a, i], a[i], axis=0)
        case("Gather", [a, np.array([-1, -2], "int32")], a[[-1, -2]], axis=0)
        c, b = sample("bool", (3, 1)), sample(dtype, (4,))
        case("Where", [c, a, b], np.where(c, a, b))
    s = np.array([b"one", b"", b"three", b"\x00\xff"], object)
    case("Reshape", [s], s.reshape(2, 2), dims=[2, 2])
    case("Gather", [s, np.array([3, 0])], s[[3, 0]], axis=0)
    case("Slice", [s], s[1:3], begin=[1], size=[2])
    case("Index", [s, np.int64(2)], s[2:3].reshape(()))
    case("Where", [np.array([True, False, True, False]), s, s[::-1].copy()],
         np.where([True, False, True, False], s, s[::-1]))
    case("StringLength", [s], np.array([len(v) for v in s], "int64"))
    case("StringConcat", [s.reshape(4, 1), s[:2]],
         np.array([[a + b for b in s[:2]] for a in s], object))
    for dtype in ["float32", "float16", "int64", "bool"]:
        for i in (np.array([0, 2, 1]), np.array([[1, 0]], "uint8")):
            case("OneHot", [i], np.eye(3)[i].astype(dtype), depth=3, dtype=dtype)


def reductions():
    for dtype in INTS + FLOATS + COMPLEX + ["bool"]:
        a = sample(dtype, (3, 4, 2))
        # Few bits, so that the order of additions does not change a float16 sum.
        if dtype == "float16":
            a = np.round(a)
        for axes in ((), (0,), (1,), (-1,), (0, 2), (2, 1), (0, 1, 2)):
            axis = axes or None
            case("ReduceSum", [a], np.sum(a, axis=axis), axes=axes)
            if np.dtype(dtype).kind == "u" or np.dtype(dtype).kind == "i":
                mean = np.mean(a.astype("float64"), axis=axis)
            else:
                mean = np.mean(a, axis=axis)
            case("ReduceMean", [a], mean, axes=axes)
            if np.dtype(dtype).kind in "iuf":
                case("ReduceMax", [a], np.max(a, axis=axis), axes=axes)
                case("ReduceMin", [a], np.min(a, axis=axis), axes=axes)
    for dtype in FLOATS:
        a = specials(dtype).reshape(2, 4)
        case("ReduceMax", [a], np.max(a, axis=1), axes=(1,))
        case("ReduceMin", [a], np.min(a, axis=0), axes=(0,))
    case("ReduceSum", [np.zeros((0, 3), "float32")], np.zeros(3, "float32"), axes=(0,))
    case("ReduceMean", [np.zeros((0, 2), "float32")], np.full(2, np.nan, "float32"), axes=(0,))


if __name__ == "__main__":
    print(f"# Made by make_numpy_cases.py with NumPy {np.__version__}")
    with np.errstate(all="ignore"):
        for group in (binary, compare, unary, shapes, reductions):
            group()
        rng = np.random.default_rng(20240608)
        language_cases.functions(case, sample, specials)
        language_cases.layout(case, sample)
        language_cases.order(case, sample, specials)
        language_cases.strings(case, sample)
        language_cases.ragged(case, sample)
