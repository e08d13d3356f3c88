# SPDX-License-Identifier: Apache-2.0
"""Cases of make_numpy_cases.py for rounding, powers, bits, layout, order, strings and ragged rows."""
import re

import farmhash  # pyfarmhash
import numpy as np

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]


class Ragged:
    """Rows of rows …: the splits of each level, outermost first, and the flat values."""

    def __init__(self, splits, flat):
        self.splits, self.flat = splits, flat


def objects(values, shape=None):
    a = np.empty(len(values), object)
    a[:] = values
    return a if shape is None else a.reshape(shape)


def functions(case, sample, specials):
    floating = {"Floor": np.floor, "Ceil": np.ceil, "Round": np.round, "Expm1": np.expm1, "Log1p": np.log1p,
                "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos,
                "Atan": np.arctan, "Sinh": np.sinh, "Cosh": np.cosh, "Tanh": np.tanh}
    predicates = {"IsNan": np.isnan, "IsInf": np.isinf, "IsFinite": np.isfinite}
    for dtype in FLOATS:
        halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.25, -2.75], dtype)
        for a in (sample(dtype, (2, 4)), specials(dtype), halves):
            for op, f in {**floating, **predicates}.items():
                case(op, [a], f(a))
            case("Sigmoid", [a], (1 / (1 + np.exp(-a.astype("float64")))).astype(dtype))
        a, b = sample(dtype, (2, 3)), sample(dtype, (3,))
        case("Atan2", [a, b], np.arctan2(a, b))
        case("Power", [np.abs(a), b], np.power(np.abs(a), b))
        case("Power", [specials(dtype)[:, None], np.array([0, 1, 2, -1], dtype)],
             np.power(specials(dtype)[:, None], np.array([0, 1, 2, -1], dtype)))
    for dtype in INTS + FLOATS:
        a = sample(dtype, (7,))
        a[0] = 0
        case("Sign", [a], np.sign(a))
        low, high = np.array(1, dtype), np.array(5, dtype)
        case("Clip", [a, low, high], np.clip(a, low, high))
    for dtype in INTS:
        a, b = sample(dtype, (3, 4)), np.array([0, 1, 2, 7], dtype)
        case("Power", [a, b], np.power(a, b))
        b = sample(dtype, (4,))
        case("BitAnd", [a, b], a & b)
        case("BitOr", [a, b], a | b)
        case("BitXor", [a, b], a ^ b)
        case("BitNot", [a], ~a)
        bits = np.dtype(dtype).itemsize * 8
        for counts in ([0, 1, 3, bits - 1], [bits, bits + 1, 2, 100]):
            counts = np.array(counts, dtype)
            case("ShiftLeft", [a, counts], np.left_shift(a, counts))
            case("ShiftRight", [a, counts], np.right_shift(a, counts))


def layout(case, sample):
    for dtype in ["int16", "float32", "complex128", "bool", "object"]:
        a = (objects([b"%d" % i * (i % 3) for i in range(24)], (2, 3, 4)) if dtype == "object"
             else sample(dtype, (2, 3, 4)))
        case("ExpandDims", [a], np.expand_dims(a, (0, 2)), axes=(0, 2))
        case("ExpandDims", [a], np.expand_dims(a, -1), axes=(-1,))
        case("Squeeze", [a.reshape(1, 6, 1, 4)], a.reshape(6, 4), axes=(0, -2))
        case("Squeeze", [a], a, axes=())
        case("Transpose", [a], a.transpose(), permutation=())
        case("Transpose", [a], a.transpose(1, 0, 2), permutation=(1, 0, 2))
        case("Transpose", [a], a.transpose(2, 0, 1), permutation=(-1, 0, 1))
        case("BroadcastTo", [a[:, :1]], np.broadcast_to(a[:, :1], (3, 2, 5, 4)), dims=(3, 2, 5, 4))
        case("BroadcastTo", [a[0, 0, :1]], np.broadcast_to(a[0, 0, :1], (2, 0)), dims=(2, 0))
        case("Tile", [a], np.tile(a, (2, 1, 3)), multiples=(2, 1, 3))
        case("Tile", [a], np.tile(a, (1, 0, 2)), multiples=(1, 0, 2))
        case("Reverse", [a], a[::-1, :, ::-1], axes=(0, -1))
        case("StridedSlice", [a], a[1:, ::-1, -3:-1], begin=(1, 2**63 - 1, -3), end=(2**63 - 1, -2**63, -1),
             step=(1, -1, 1))
        case("StridedSlice", [a], a[-9:9, 2:0:-2], begin=(-9, 2), end=(9, 0), step=(1, -2))
        case("StridedSlice", [a], a[1:1], begin=(1,), end=(1,), step=(1,))
        paddings = ((1, 0), (2, 1), (0, 3))
        before, after = [p[0] for p in paddings], [p[1] for p in paddings]
        fill = a[1, 1, 1]
        filling = objects([fill], ()) if dtype == "object" else np.array(fill)
        padded = np.full((3, 6, 7), fill, a.dtype)
        padded[1:, 2:5, :4] = a
        case("Pad", [a, filling], padded, before=before, after=after, mode=0)
        if dtype != "object":
            case("Pad", [a], np.pad(a, paddings), before=before, after=after, mode=0)
        case("Pad", [a], np.pad(a, paddings, "reflect"), before=before, after=after, mode=1)
        case("Pad", [a], np.pad(a, paddings, "symmetric"), before=before, after=after, mode=2)
        case("Concat", [a, a[:, :1], a[:, 1:1]], np.concatenate([a, a[:, :1], a[:, 1:1]], 1), axis=1)
        case("Concat", [a, a], np.concatenate([a, a], -1), axis=-1)
        case("Stack", [a[0], a[1], a[0]], np.stack([a[0], a[1], a[0]], 1), axis=1)
        case("Stack", [a[0, 0], a[1, 1]], np.stack([a[0, 0], a[1, 1]], 0), axis=0)
        case("Unstack:2", [a], a[:, 2], axis=1)
        case("Gather", [a, np.array([[2, -1], [0, 0]])], a[:, [[2, -1], [0, 0]]], axis=1)
        case("Gather", [a, np.array(-1)], a[..., -1], axis=-1)
        case("Size", [a], np.int64(a.size))
    for start, limit, delta, dtype in ((0, 5, 1, "int64"), (7, -2, -3, "int8"), (3, 3, 1, "int32"),
                                       (0, 1, 0.25, "float32"), (2.5, -1, -0.75, "float64"), (250, 255, 2, "uint8")):
        numbers = [np.array(n, dtype) for n in (start, limit, delta)]
        case("Range", numbers, np.arange(start, limit, delta).astype(dtype))


def order(case, sample, specials):
    for dtype in INTS + FLOATS + ["bool"]:
        a = sample(dtype, (3, 5))
        a[:, 3] = a[:, 1]
        values = [a] + ([specials(dtype).reshape(2, 4)] if dtype in FLOATS else [])
        for b in values:
            for axis in (0, 1, -1):
                up = np.sort(b, axis=axis, kind="stable")
                case("Sort", [b], up, axis=axis, descending=0)
                case("Sort", [b], np.flip(up, axis), axis=axis, descending=1)
                case("ArgSort", [b], np.argsort(b, axis=axis, kind="stable"), axis=axis, descending=0)
                # Equal ones keep their order: the reverse of the reversed.
                size = b.shape[axis]
                down = np.flip(size - 1 - np.argsort(np.flip(b, axis), axis=axis, kind="stable"), axis)
                case("ArgSort", [b], down, axis=axis, descending=1)
                case("ArgMax", [b], np.argmax(b, axis), axis=axis)
                case("ArgMin", [b], np.argmin(b, axis), axis=axis)
            if dtype == "bool":
                continue
            down = np.flip(b.shape[-1] - 1 - np.argsort(np.flip(b, -1), axis=-1, kind="stable"), -1)[:, :3]
            case("TopK", [b], np.take_along_axis(b, down, -1), k=3)
            case("TopK:1", [b], down, k=3)
    s = objects([b"b", b"", b"ab", b"b", b"a\x00", b"\xff"])
    case("Sort", [s], np.sort(s), axis=0, descending=0)
    case("ArgSort", [s], np.argsort(s, kind="stable"), axis=0, descending=0)
    for dtype in INTS + FLOATS + COMPLEX:
        a = sample(dtype, (3, 4))
        if dtype == "float16":
            a = np.round(a)
        for axis in (0, -1):
            total = np.cumsum(a, axis)
            case("CumSum", [a], total, axis=axis, exclusive=0, reverse=0)
            case("CumSum", [a], total - a.astype(total.dtype), axis=axis, exclusive=1, reverse=0)
            case("CumSum", [a], np.flip(np.cumsum(np.flip(a, axis), axis), axis), axis=axis, exclusive=0, reverse=1)
        small = (a % 5 if dtype in INTS else a).astype(dtype)
        for axes in ((), (0,), (1, 0)):
            case("ReduceProd", [small], np.prod(small, axis=axes or None), axes=axes)
        case("ReduceSum.keep", [a], np.sum(a, axis=1, keepdims=True), axes=(1,))
        b = sample(dtype, (4, 2))
        wide = {"float16": "float64", "float32": "float64", "complex64": "complex128"}.get(dtype, dtype)
        case("MatMul", [a, b], (a.astype(wide) @ b.astype(wide)).astype(dtype))
        c = sample(dtype, (2, 1, 3, 4))
        d = sample(dtype, (5, 4, 2))
        case("MatMul", [c, d], (c.astype(wide) @ d.astype(wide)).astype(dtype))
        case("MatMul", [a[:, :0], b[:0]], a[:, :0] @ b[:0])
    for a in (sample("bool", (3, 4)), np.zeros((2, 0), bool)):
        for axes in ((), (0,), (-1,)):
            case("ReduceAny", [a], np.any(a, axis=axes or None), axes=axes)
            case("ReduceAll", [a], np.all(a, axis=axes or None), axes=axes)


def strings(case, sample):
    s = objects([b"Hello World", b"", b"  a,b,,c \t", b"x\x00y", b"\xc3\xa9t\xc3\xa9", b"2024-06-07"])
    each = lambda f, a=s: objects([f(v) for v in a.ravel()], a.shape)
    case("StringLower", [s], each(bytes.lower))
    case("StringUpper", [s.reshape(2, 3)], each(bytes.upper, s.reshape(2, 3)))
    case("StringStrip", [s], each(bytes.strip))
    t = objects([b"abcdef", b"xyz"])
    for begin, length in ((0, 2), (-2, 9), (3, 0)):
        case("Substr", [t, np.array(begin), np.array(length)], each(lambda v: v[begin:][:length], t))
    case("Substr", [t.reshape(2, 1), np.array([0, 1]), np.array([3, 1])],
         objects([v[b:b + n] for v in t for b, n in ((0, 3), (1, 1))], (2, 2)))
    a = s.reshape(2, 3)
    case("ReduceJoin", [a], objects([b"-".join(row) for row in a]), axis=-1, separator=b"-")
    case("ReduceJoin", [a], objects([b"".join(row) for row in a.T]), axis=0, separator=b"")
    case("StringJoin", [t, s[:2]], objects([x + b", " + y for x, y in zip(t, s[:2])]))
    numbers = objects([b" 17", b"-3\n", b"0"])
    for dtype in ("int32", "int64", "float32", "float64"):
        case("StringToNumber", [numbers], np.array([17, -3, 0], dtype), dtype=dtype)
    case("StringToNumber", [objects([b"1.5e3", b"-inf"])], np.array([1500, -np.inf]), dtype="float64")
    raw = np.array([1, -2, 3, 4], "int16")
    case("DecodeRaw", [objects([raw.tobytes()], ())], raw.reshape(2, 2), dtype="int16", dims=(-1, 2))
    for dtype in INTS:
        a = sample(dtype, (5,))
        case("AsString", [a], objects([b"%d" % int(v) for v in a]), precision=-1)
    case("AsString", [np.array([True, False])], objects([b"true", b"false"]), precision=-1)
    for dtype in ("float32", "float64"):
        a = sample(dtype, (6,))
        case("AsString", [a], objects([b"%.3f" % float(v) for v in a]), precision=3)
        case("AsString", [a], objects([np.format_float_positional(v, unique=True).encode() for v in a]), precision=-1)
    case("AsString", [np.array([np.nan, np.inf, -np.inf, 0.0, 1e300])],
         objects([b"nan", b"inf", b"-inf", b"0", b"1e+300"]), precision=-1)
    for pattern in (rb"[a-z]+", rb".*\d{2}", rb"", rb"(?i)HELLO.*"):
        case("RegexFullMatch", [s], np.array([re.fullmatch(pattern, v, re.A) is not None for v in s]), pattern=pattern)
    for pattern, rewrite, python in ((rb"([a-z])(\d|,)", rb"\2\1", rb"\2\1"), (rb"o", rb"0", rb"0"),
                                     (rb"\s+", rb"", rb"")):
        case("RegexReplace", [s], each(lambda v: re.sub(pattern, python, v)), pattern=pattern, rewrite=rewrite,
             **{"global": 1})
        case("RegexReplace", [s], each(lambda v: re.sub(pattern, python, v, count=1)), pattern=pattern,
             rewrite=rewrite, **{"global": 0})
    for buckets in (1, 10, 2**40):
        case("StringToHashBucket", [s], np.array([farmhash.fingerprint64(v) % buckets for v in s], "int64"),
             buckets=buckets)


def ragged(case, sample):
    for dtype in ("float32", "int64", "object"):
        flat = objects([b"a", b"bb", b"", b"d", b"e"]) if dtype == "object" else sample(dtype, (5,))
        splits = [0, 2, 2, 5]
        rows = Ragged([splits], flat)
        case("RowLengths", [rows], np.diff(splits))
        case("FlatValues", [rows], flat)
        fill = objects([b"?"], ()) if dtype == "object" else np.array(7, dtype)
        dense = np.full((3, 3), fill[()], flat.dtype)
        dense[0, :2], dense[2, :3] = flat[:2], flat[2:]
        case("ToTensor", [rows, fill], dense)
        case("FromRowLengths", [flat, np.diff(splits)], rows)
        deep = Ragged([[0, 1, 1, 3], [0, 2, 2, 5]], flat)  # [[[0 1]] [] [[] [2 3 4]]]
        dense = np.full((3, 2, 3), fill[()], flat.dtype)
        dense[0, 0, :2], dense[2, 1, :3] = flat[:2], flat[2:]
        case("ToTensor", [deep, fill], dense)
        case("RowLengths", [deep], np.array([1, 0, 2]))
    pairs = sample("int32", (5, 2))
    case("ToTensor", [Ragged([[0, 1, 5]], pairs)],
         np.stack([np.concatenate([pairs[:1], np.zeros((3, 2), "int32")]), pairs[1:]]))
    case("FromRowLengths", [pairs, np.array([0, 5])], Ragged([[0, 0, 5]], pairs))
    s = objects([b"a,b,,c", b"", b",x"])
    for separator, split in ((b",", lambda v: v.split(b",")), (b"", lambda v: v.split()),
                             (b",b", lambda v: v.split(b",b"))):
        parts = [split(v) for v in s]
        splits = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).tolist()
        case("StringSplit", [s], Ragged([splits], objects([p for row in parts for p in row])), separator=separator)
        case("StringSplit", [s[:1].reshape(())], objects(parts[0]), separator=separator)
    case("StringSplit", [objects([b" to  be\tor\n"], ())], objects([b"to", b"be", b"or"]), separator=b"")
