# SPDX-License-Identifier: Apache-2.0
"""Messages of the control plane: the types that the .proto files declare, their bytes, and random values of each type."""
import pathlib
import struct
import subprocess
from typing import NamedTuple

TREE = pathlib.Path(__file__).resolve().parents[2]
FILES = ("control/proto/dispatcher.proto", "control/proto/dataset.proto")
VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5  # kinds of fields on the wire
DOUBLE, FLOAT, FIXED64, FIXED32, SFIXED32, SFIXED64 = 1, 2, 6, 7, 15, 16  # types in descriptors
STRING, MESSAGE, BYTES_TYPE = 9, 11, 12
SINT32, SINT64 = 17, 18
REPEATED = 3
DEEPEST = 6  # levels of random messages


def varint(value):
    value &= (1 << 64) - 1
    found = bytearray()
    while value >= 128:
        found.append(value % 128 + 128)
        value //= 128
    found.append(value)
    return bytes(found)


def field(number, kind, value):
    """Returns a field: `value` is an integer for VARINT, the packed bytes for EIGHT and FOUR, any bytes for BYTES."""
    key = varint(number << 3 | kind)
    if kind == VARINT:
        return key + varint(value)
    return key + (varint(len(value)) if kind == BYTES else b"") + value


def nested(number, *parts):
    return field(number, BYTES, b"".join(parts))


def fixed64(number, value):
    return field(number, EIGHT, struct.pack("<Q", value))


def parse(data):
    """Returns the fields of a message: {number: [int or bytes]}. ValueError if it is malformed."""
    found, at = {}, 0

    def take():
        nonlocal at
        value = shift = 0
        while True:
            if at >= len(data):
                raise ValueError("cut short")
            byte, at = data[at], at + 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = take()
        kind = key & 7
        if kind == VARINT:
            value = take()
        else:
            size = {EIGHT: 8, FOUR: 4}.get(kind)
            size = take() if size is None else size
            value, at = bytes(data[at : at + size]), at + size
        found.setdefault(key >> 3, []).append(value)
    return found


class Field(NamedTuple):
    number: int
    type: int
    repeated: bool
    of: str  # name of a message's type


class Method(NamedTuple):
    path: str
    request: str  # name of its type
    is_stream: bool


class Schema:
    """The types and methods of FILES, as protoc reads them."""

    def __init__(self, folder):
        out = folder / "descriptors"
        command = ["protoc", f"-I{TREE}", "--include_imports", f"--descriptor_set_out={out}", *FILES]
        subprocess.run(command, cwd=TREE, check=True)
        self.types, self.methods = {}, []
        for file in parse(out.read_bytes())[1]:
            its = parse(file)
            package = its.get(2, [b""])[0].decode()
            for message in its.get(4, []):
                self._add(f".{package}", message)
            for service in its.get(6, []):
                self._add_methods(package, parse(service))

    def _add(self, scope, descriptor):
        its = parse(descriptor)
        name = f"{scope}.{its[1][0].decode()}"
        self.types[name] = []
        for declared in its.get(2, []):
            of = parse(declared)
            self.types[name].append(Field(of[3][0], of[5][0], of[4][0] == REPEATED, of.get(6, [b""])[0].decode()))
        for inner in its.get(3, []):
            self._add(name, inner)

    def _add_methods(self, package, service):
        for declared in service.get(2, []):
            of = parse(declared)
            path = f"/{package}.{service[1][0].decode()}/{of[1][0].decode()}"
            self.methods.append(Method(path, of[2][0].decode(), bool(of.get(5, [0])[0])))

    def random(self, rng, name, depth=0):
        """Returns a message of that type with random fields, most of them with values near a limit."""
        found = []
        for one in self.types[name]:
            if rng.random() < 0.4:
                continue
            for _ in range(rng.choice((1, 1, 2, 30)) if one.repeated and depth < 3 else 1):
                found.append(self._value(rng, one, depth))
        return b"".join(found)

    def _value(self, rng, one, depth):
        if one.type == MESSAGE:
            inner = self.random(rng, one.of, depth + 1) if depth < DEEPEST else b""
            return field(one.number, BYTES, inner)
        if one.type in (STRING, BYTES_TYPE):
            return field(one.number, BYTES, random_bytes(rng))
        number = random_number(rng)
        if one.type in (DOUBLE, FIXED64, SFIXED64):
            return fixed64(one.number, number)
        if one.type in (FLOAT, FIXED32, SFIXED32):
            return field(one.number, FOUR, struct.pack("<I", number & 0xFFFFFFFF))
        return field(one.number, VARINT, number)


def random_number(rng):
    """Returns a number of 64 bits: small, near a power of two, or any."""
    near = (1 << rng.randrange(64)) + rng.randrange(-2, 3)
    return rng.choice((rng.randrange(5), near, -near, rng.getrandbits(64))) & (1 << 64) - 1


def random_bytes(rng):
    return rng.choice((b"", b"default", b"999", b"\xff\xfe", b"a" * 300, rng.randbytes(rng.randrange(64))))


def mutated(rng, data):
    """Returns the data with a few bytes changed, repeated, removed or inserted."""
    data = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(data) + 1)
        some = rng.randrange(1, 9)
        change = rng.randrange(5)
        if change == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif change == 1:
            del data[at : at + some]
        elif change == 2:
            data[at:at] = data[at : at + some] * rng.choice((1, 2, 100))
        elif change == 3:
            data[at:at] = rng.randbytes(some)
        else:
            data[at : at + 8] = struct.pack("<Q", random_number(rng))
    return bytes(data)


def recorded():
    """Returns messages that releases recorded: {"client_up" and so on: [bytes]}."""
    found = {}
    for path in sorted((TREE / "tests/releases").glob("*/messages.txt")):
        for line in path.read_text().splitlines():
            name, data = line.split()
            found.setdefault(name.split(".")[0], []).append(bytes.fromhex(data))
    return found
