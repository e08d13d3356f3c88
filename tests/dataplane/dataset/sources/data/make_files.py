# SPDX-License-Identifier: Apache-2.0
"""Writes the files in this folder, without Penstock: python3 make_files.py (needs NumPy and pyarrow)"""
import gzip
import io
import pathlib
import struct
import tarfile
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet

folder = pathlib.Path(__file__).parent


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


def records():
    contents = [b"first", b"", bytes(range(256)) * 5, "naïve\n".encode(), b"last"]
    written = [record(content) for content in contents]
    (folder / "five.tfrecord").write_bytes(b"".join(written))
    # Two members, as `cat a.gz b.gz` makes them.
    members = [b"".join(written[:2]), b"".join(written[2:])]
    (folder / "five.tfrecord.gz").write_bytes(b"".join(gzip.compress(member, mtime=0) for member in members))
    (folder / "five.tfrecord.zlib").write_bytes(zlib.compress(b"".join(written)))
    (folder / "lines.txt.gz").write_bytes(gzip.compress(b"one\r\ntwo\n\nno end", mtime=0))


def add(tar: tarfile.TarFile, name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    member.type = kind
    tar.addfile(member, io.BytesIO(content))


def samples(tar: tarfile.TarFile, prefix: str, count: int):
    for n in range(count):
        key = f"{prefix}{n:04}"
        add(tar, f"{key}.jpg" if n % 2 == 0 else f"{key}.PNG", bytes([n]) * (300 * n))
        add(tar, f"{key}.cls", str(n).encode())
        add(tar, f"{key}.note.txt", b"not asked for" * n)


def tars():
    with tarfile.open(folder / "ustar.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        add(tar, "set", kind=tarfile.DIRTYPE)
        samples(tar, "set/", 4)
        samples(tar, "d" * 90 + "/" + "e" * 50 + "/", 1)  # uses the fields name and prefix
    long_name = "deep/" * 60 + "näme-"  # 300 characters
    with tarfile.open(folder / "pax.tar", "w", format=tarfile.PAX_FORMAT,
                      pax_headers={"comment": "a global header"}) as tar:
        add(tar, "__index__", b"not a sample")
        samples(tar, long_name, 3)
    with tarfile.open(folder / "gnu.tar", "w", format=tarfile.GNU_FORMAT) as tar:
        add(tar, "README", b"no extension, so no sample")
        samples(tar, long_name, 2)
        samples(tar, "short/", 2)
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        samples(tar, "packed/", 5)
    (folder / "samples.tar.gz").write_bytes(gzip.compress(plain.getvalue(), mtime=0))
    with tarfile.open(folder / "incomplete.tar", "w") as tar:
        add(tar, "a.jpg", b"a")
        add(tar, "a.cls", b"1")
        add(tar, "b.jpg", b"b")  # no label
        add(tar, "c.cls", b"3")
        add(tar, "c.jpeg", b"c")


def arrays():
    np.save(folder / "rows.npy", np.arange(7 * 2 * 3, dtype=np.float32).reshape(7, 2, 3) / 4)
    np.save(folder / "more_rows.npy", -np.arange(2 * 2 * 3, dtype=np.float32).reshape(2, 2, 3))
    np.save(folder / "fortran.npy", np.asfortranarray(np.ones((3, 2), np.float32)))
    np.save(folder / "big_endian.npy", np.ones((3, 2), ">f4"))
    pair = dict(image=np.arange(5 * 4, dtype=np.uint8).reshape(5, 4), label=np.arange(5, dtype=np.int64) * 10)
    np.savez(folder / "pair.npz", **pair, other=np.zeros(3))
    np.savez_compressed(folder / "packed_pair.npz", image=pair["image"][:3] + 100, label=pair["label"][:3] + 1)
    np.savez(folder / "volume.npz", x=np.arange(24, dtype=np.int16).reshape(2, 3, 4), y=np.array([1, 2], np.uint8))


def tokens():
    np.save(folder / "tokens.npy", np.arange(100, 123, dtype=np.uint16))
    np.arange(50, dtype=np.uint16).tofile(folder / "tokens.bin")
    header = struct.pack("<4I", 0x70656E73, 1, 12, 0)
    (folder / "headed_tokens.bin").write_bytes(header + np.arange(-6, 6, dtype=np.int32).tobytes())


def table():
    rows = range(7)
    columns = pa.table({
        "id": pa.array(rows, pa.int64()),
        "name": pa.array([f"row {n}" for n in rows]),
        "good": pa.array([n % 2 == 0 for n in rows]),
        "score": pa.array([None if n % 3 == 1 else n / 2 for n in rows], pa.float64()),
        "weights": pa.array([[(i + 1) / 2 for i in range(n % 4)] for n in rows], pa.list_(pa.float32())),
        "pair": pa.array([[n, -n] for n in rows], pa.list_(pa.int32(), 2)),
    })
    pa.parquet.write_table(columns, folder / "table.parquet", row_group_size=3)
    # A few bytes on disk, 64 KiB once read. The name does not end in .parquet: the suite reads those files as one
    # table.
    pa.parquet.write_table(pa.table({"name": pa.array(["row"] * 8192)}), folder / "same_rows.pq")


records()
tars()
arrays()
tokens()
table()
