# SPDX-License-Identifier: Apache-2.0
"""Writes the TFRecord files beside it, without Penstock: python3 make_files.py"""
import pathlib
import struct


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


folder = pathlib.Path(__file__).parent
records = [b"first", b"", bytes(range(256)) * 5, "naïve\n".encode(), b"last"]
(folder / "five.tfrecord").write_bytes(b"".join(map(record, records)))
