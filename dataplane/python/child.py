# SPDX-License-Identifier: Apache-2.0
"""The program of a Python process beside a worker or a trainer: it runs functions and generators of datasets, one
request at a time.

It is part of the binary (child_source.cc.in). It needs only NumPy, and cloudpickle if a function is sent by value.
process.h describes requests and replies, leaves.h describes leaves.
"""
import collections
import contextlib
import importlib
import json
import mmap
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback

import numpy as np

REQUEST, REPLY = struct.Struct("<QQQQ"), struct.Struct("<QQQ")
ARGUMENTS, RESULTS, DEFINE, CALL, OPEN, NEXT, CLOSE = range(1, 8)
LEAVES, END, NEED_ROOM, READY = 0, 100, 101, 102
PERMISSION_DENIED, FAILED_PRECONDITION = 7, 9
KEPT = 1
MOST_TEXT = 16 << 10
DTYPES = (
    "invalid bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 "
    "complex128 string"
).split()
STRING = DTYPES.index("string")


class Unusable(Exception):
    """The function cannot be used here: (code, the reason)."""


def numpy_dtype(name):
    if name == "bfloat16":
        try:
            import ml_dtypes
        except ImportError:
            raise Unusable(
                FAILED_PRECONDITION,
                "needs the package ml_dtypes for bfloat16; install it here, or cast before the function",
            ) from None
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


# --- Nests: a leaf's number, ["t", members], ["n", name, fields, members], ["d", [key, member] …] ---------------------


def pack(nest, leaves):
    if isinstance(nest, int):
        return leaves[nest]
    kind, rest = nest[0], nest[1:]
    if kind == "t":
        return tuple([pack(member, leaves) for member in rest[0]])
    if kind == "n":
        return named(rest[0], tuple(rest[1]))(*[pack(member, leaves) for member in rest[2]])
    return {key: pack(member, leaves) for key, member in rest[0]}


NAMED = {}


def named(name, fields):
    if (name, fields) not in NAMED:
        NAMED[name, fields] = collections.namedtuple(name, fields)
    return NAMED[name, fields]


def flatten(nest, value, leaves):
    if isinstance(nest, int):
        leaves[nest] = value
        return
    kind, rest = nest[0], nest[1:]
    if kind == "d":
        keys = [key for key, _ in rest[0]]
        if not isinstance(value, dict) or value.keys() != set(keys):
            raise TypeError(f"gives {shown(value)}; output_signature has a dict of {keys}")
        for key, member in rest[0]:
            flatten(member, value[key], leaves)
        return
    members = rest[-1]
    if not isinstance(value, (tuple, list)) or len(value) != len(members):
        raise TypeError(f"gives {shown(value)}; output_signature has a tuple of {len(members)}")
    for member, part in zip(members, value):
        flatten(member, part, leaves)


def shown(value):
    if isinstance(value, dict):
        return f"a dict of {list(value)}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


# --- Leaves ------------------------------------------------------------------------------------------------------------


def read_leaves(memory):
    """Returns views of the leaves in `memory`. Scalars and strings are copies, as `as_numpy_iterator` returns them."""
    words = memory[: len(memory) // 8 * 8].view(np.uint64)
    leaves, at = [], 1
    for _ in range(int(words[0])):
        dtype, rank, offset, size = map(int, words[at : at + 4])
        dims = tuple(map(int, words[at + 4 : at + 4 + rank]))
        at += 4 + rank
        data = memory[offset : offset + size]
        if dtype == STRING:
            leaves.append(read_strings(data, dims))
            continue
        array = data.view(numpy_dtype(DTYPES[dtype])).reshape(dims)
        leaves.append(array if dims else array[()])
    return leaves


def read_strings(data, dims):
    count = int(np.prod(dims, dtype=np.int64))
    ends = data[: 8 * (count + 1)].view(np.uint64).tolist()
    text = data[8 * (count + 1) :].tobytes()
    items = [text[begin:end] for begin, end in zip(ends, ends[1:])]
    if not dims:
        return items[0]
    array = np.empty(count, dtype=object)
    array[:] = items
    return array.reshape(dims)


def to_leaf(value, name):
    """Returns (number of the dtype, dims, contiguous arrays of bytes) of a function's result."""
    if name == "string":
        array = np.asarray(value, dtype=object)
        items = [as_bytes(item) for item in array.ravel().tolist()]
        ends = np.zeros(len(items) + 1, np.uint64)
        np.cumsum([len(item) for item in items], out=ends[1:])
        return STRING, array.shape, (ends.view(np.uint8), np.frombuffer(b"".join(items), np.uint8))
    array = as_dtype(np.asarray(value), numpy_dtype(name))
    dims = array.shape
    return DTYPES.index(name), dims, (np.ascontiguousarray(array).reshape(-1).view(np.uint8),)


def as_bytes(item):
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, (bytes, bytearray)):
        return bytes(item)
    raise TypeError(f"gives a {type(item).__name__} where output_signature has a string")


def as_dtype(array, dtype):
    """Integers keep their values, floats may lose digits, and nothing else is cast."""
    if array.dtype == dtype:
        return array
    if array.dtype.kind in "iu" and dtype.kind in "iu":
        cast = array.astype(dtype)
        if (cast != array).any():
            raise ValueError(f"gives {array.dtype} values that {dtype} of output_signature cannot hold")
        return cast
    if array.dtype != object and (np.can_cast(array.dtype, dtype, "same_kind") or array.size == 0):
        return array.astype(dtype)
    if array.dtype == object:
        raise TypeError("gives rows of different lengths, or values that are not numbers")
    raise TypeError(f"gives {array.dtype}; output_signature has {dtype}")


class Frame:
    """Leaves ready to be written: their size in bytes, and the place of each."""

    def __init__(self, leaves):
        words = [len(leaves)]
        self._parts = []
        at = 8 + sum(8 * (4 + len(dims)) for _, dims, _ in leaves)
        for dtype, dims, parts in leaves:
            at = (at + 63) // 64 * 64
            size = sum(len(part) for part in parts)
            words += [dtype, len(dims), at, size, *dims]
            for part in parts:
                self._parts.append((at, part))
                at += len(part)
        self._parts.append((0, np.array(words, np.uint64).view(np.uint8)))
        self.size = at

    def write(self, memory):
        for at, part in self._parts:
            memory[at : at + len(part)] = part


# --- Functions -----------------------------------------------------------------------------------------------------------


class Function:
    def __init__(self, name, pickle, call):
        self.name = name
        call = json.loads(call)
        if pickle and call["python"] != list(sys.version_info[:2]):
            raise Unusable(
                FAILED_PRECONDITION,
                f"was sent by value from Python {'.'.join(map(str, call['python']))}, but {sys.executable} is "
                f"{sys.version.split()[0]}; run the same minor version everywhere, or send it by import path",
            )
        self._kind, self._input, self._output, self._dtypes = (
            call[key] for key in ("kind", "input", "output", "dtypes")
        )
        self._rows = [tuple(dim or 0 for dim in shape or ()) for shape in call["shapes"]]
        self._function = unpickled(name, pickle) if pickle else imported(name)

    def __call__(self, leaves):
        element = pack(self._input, leaves)
        result = self._function(*element) if type(element) is tuple else self._function(element)
        if self._kind == "rows":
            return self._stacked([self.leaves_of(row) for row in result])
        return self.leaves_of(result)

    def iterate(self):
        return iter(self._function())

    def leaves_of(self, value):
        leaves = [None] * len(self._dtypes)
        flatten(self._output, value, leaves)
        return [to_leaf(leaf, dtype) for leaf, dtype in zip(leaves, self._dtypes)]

    def _stacked(self, rows):
        """Stacks elements into one, whose leaves have one more dimension in front."""
        return [self._column(i, [row[i] for row in rows]) for i in range(len(self._dtypes))]

    def _column(self, i, leaves):
        dims = leaves[0][1] if leaves else self._rows[i]
        if any(leaf[1] != dims for leaf in leaves):
            raise ValueError("gives elements of different shapes for one input; flat_map needs one shape for each")
        dtype = DTYPES.index(self._dtypes[i])
        if dtype != STRING:
            return dtype, (len(leaves), *dims), [leaf[2][0] for leaf in leaves]
        items = [item for leaf in leaves for item in strings_of(leaf)]
        return (dtype, (len(leaves), *dims), to_leaf(items, "string")[2])


def strings_of(leaf):
    ends, text = leaf[2][0].view(np.uint64).tolist(), leaf[2][1].tobytes()
    return [text[begin:end] for begin, end in zip(ends, ends[1:])]


def imported(name):
    module, _, path = name.partition(":")
    try:
        found = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise Unusable(
            FAILED_PRECONDITION,
            f"cannot be imported by {sys.executable} ({error}); install its module where the workers run, put its "
            "folder into their PYTHONPATH, or send it by value: ps.py_function(…, by_value=True)",
        ) from None
    # If `@ps.py_function` wraps the function in its module, use the wrapped function.
    found = getattr(found, "__penstock_function__", found)
    # Allowing a module does not allow the functions that it imported.
    if getattr(found, "__module__", None) != module:
        raise Unusable(PERMISSION_DENIED, f"is not defined in the module {module}, which only imports it")
    return found


def unpickled(name, pickle):
    try:
        import cloudpickle
    except ImportError:
        raise Unusable(
            FAILED_PRECONDITION,
            f"was sent by value, but {sys.executable} has no cloudpickle to read it; install cloudpickle, or put the "
            "function into a module that the workers have",
        ) from None
    try:
        return cloudpickle.loads(pickle)
    except Exception as error:
        raise Unusable(
            FAILED_PRECONDITION,
            f"cannot be read by Python {sys.version.split()[0]} with cloudpickle {cloudpickle.__version__}: "
            f"{type(error).__name__}: {error}",
        ) from None


def explained(error):
    """Returns (canonical code, text) of an exception: the exception, and the traceback from the function on."""
    if isinstance(error, Unusable):
        return error.args
    codes = {MemoryError: 8, NotImplementedError: 12, ValueError: 3, TypeError: 3}
    code = next((code for kind, code in codes.items() if isinstance(error, kind)), 2)
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    if trace is None:
        return code, str(error)
    lines = traceback.format_exception(type(error), error, trace)
    return code, f"raised {lines[-1].strip()}\n{''.join(lines).rstrip()}"


# --- Requests --------------------------------------------------------------------------------------------------------------


class Child:
    def __init__(self, sock):
        self._socket = sock
        self._functions = {}
        self._sessions = {}
        self._arguments = self._results = None
        self._untouched = 0  # references to the arguments' memory while no function keeps it
        self._waiting = None  # a frame that waits for room

    def run(self):
        self._reply(READY)
        handlers = {
            DEFINE: self._define,
            CALL: self._call,
            OPEN: self._open,
            NEXT: self._next,
            CLOSE: self._close,
        }
        while True:
            data, descriptors, _, _ = socket.recv_fds(self._socket, REQUEST.size, 1)
            if not data:
                return
            op, *numbers = REQUEST.unpack(data)
            if op in (ARGUMENTS, RESULTS):
                self._map(op, descriptors[0], numbers[0])
                continue
            self._waiting = None  # the other side refused it as too large
            try:
                result = handlers[op](*numbers)
            except BaseException as error:  # SystemExit is the function's error too
                result = explained(error)
            reply = self._written(result)
            del result  # the result may be in the arguments' memory
            self._reply(*reply)

    def _map(self, op, descriptor, size):
        memory = np.frombuffer(mmap.mmap(descriptor, size), np.uint8)
        os.close(descriptor)
        if op == ARGUMENTS:
            self._arguments = memory
            del memory
            self._untouched = sys.getrefcount(self._arguments)
            return
        self._results = memory
        if self._waiting is not None:
            frame, self._waiting = self._waiting, None
            reply = self._placed(frame)
            del frame
            self._reply(*reply)

    def _define(self, function, forget, _):
        if forget:  # sessions keep their functions
            self._functions.clear()
        texts, at = [], 0
        for _ in range(3):
            size = int(self._arguments[at : at + 8].view(np.uint64)[0])
            texts.append(self._arguments[at + 8 : at + 8 + size].tobytes())
            at += (8 + size + 7) // 8 * 8
        name, pickle, call = texts
        self._functions[function] = Function(name.decode(), pickle, call)
        return []

    def _call(self, function, *_):
        return self._functions[function](read_leaves(self._arguments))

    def _open(self, session, function, _):
        made = self._functions[function]
        self._sessions[session] = made, made.iterate()
        return []

    def _next(self, session, passed_over, _):
        made, iterator = self._sessions[session]
        try:
            for _ in range(passed_over):
                try:
                    next(iterator)
                except StopIteration:
                    raise
                except Exception:  # it took the place of an element
                    pass
            value = next(iterator)
        except StopIteration:
            return END
        return made.leaves_of(value)

    def _close(self, session, *_):
        self._sessions.pop(session, None)
        return []

    def _written(self, result):
        """Writes leaves, END, or an error's code and text; returns the reply."""
        if isinstance(result, list):
            return self._placed(Frame(result))
        if result == END:
            return END, 0
        code, text = result
        data = np.frombuffer(text.encode(errors="replace")[-MOST_TEXT:], np.uint8)
        self._results[: len(data)] = data
        return code, len(data)

    def _placed(self, frame):
        if frame.size > len(self._results):
            self._waiting = frame
            return NEED_ROOM, frame.size
        frame.write(self._results)
        return LEAVES, frame.size

    def _reply(self, status, size=0):
        kept = status not in (READY, NEED_ROOM) and sys.getrefcount(self._arguments) > self._untouched
        self._socket.send(REPLY.pack(status, KEPT if kept else 0, size))


def leave_with(sock):
    """Ends this process soon after the other side is gone, whatever a function does."""
    gone = select.poll()
    gone.register(sock, 0)
    gone.poll()
    time.sleep(2)
    os._exit(0)


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the reading program
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    sock = socket.socket(fileno=3)
    os.set_inheritable(3, False)
    os.register_at_fork(after_in_child=sock.close)  # a copy open in a child would hide the end of this process
    sys.path.extend(path for path in sys.argv[1:] if path not in sys.path)
    threading.Thread(target=leave_with, args=(3,), daemon=True).start()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the other side is gone
        Child(sock).run()


main()
