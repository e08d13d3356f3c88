#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files and values that are small and become huge when a worker reads them.

    tests/attack/bombs.py gzip_lines huge_record --service grpc://localhost:5050 --folder /data/strangers

makes each bomb in the folder, reads it with a job of its own, as a stranger would, and empties the folder. Prints how the
readings ended. Needs the Python package of the build."""
import argparse
import gzip
import pathlib
import struct
import tarfile
import time
import uuid
import zipfile
import zlib

from links import crc32c

GIB = 1 << 30
BOMBS, BUFFERS = {}, {}
MOST_ELEMENTS = 3


def bomb(function):
    """Lists a function that makes the files in a folder and returns the dataset that reads them."""
    BOMBS[function.__name__] = function
    return function


def buffer(function):
    """Lists such a function whose dataset keeps all its elements."""
    BUFFERS[function.__name__] = function
    return function


def gzip_of_zeros(size, front=b""):
    """Returns a gzip file of `front` and then `size` zeros: members of 64 MiB, of which one is compressed and repeated."""
    piece = 64 << 20
    return gzip.compress(front) + gzip.compress(bytes(piece), 9) * (size // piece)


def saved(folder, name, data):
    path = folder / name
    path.write_bytes(data)
    return str(path)


# --- compressed files ------------------------------------------------------------------


@bomb
def gzip_lines(ps, folder):
    """A line of 8 GiB, in 8 MB."""
    return ps.TextLineDataset(saved(folder, "lines.gz", gzip_of_zeros(8 * GIB)), compression_type="GZIP")


@bomb
def gzip_record(ps, folder):
    """A record whose length says 6 GiB, in a compressed file that has as much."""
    length = struct.pack("<Q", 6 * GIB)
    data = gzip_of_zeros(8 * GIB, length + struct.pack("<I", _masked_crc(length)))
    return ps.TFRecordDataset(saved(folder, "record.gz", data), compression_type="GZIP")


@bomb
def nested_gzip(ps, folder):
    """A gzip file in a gzip file, ten times, around 8 GiB."""
    data = gzip_of_zeros(8 * GIB)
    for _ in range(10):
        data = gzip.compress(data)
    return ps.TextLineDataset(saved(folder, "nested.gz", data), compression_type="GZIP")


@bomb
def huge_record(ps, folder):
    """A record whose length says 2^63, with a right checksum."""
    length = struct.pack("<Q", 1 << 63)
    return ps.TFRecordDataset(saved(folder, "huge.tfrecord", length + struct.pack("<I", _masked_crc(length)) + bytes(100)))


def _masked_crc(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@bomb
def fixed_length(ps, folder):
    """A record of 4 GiB, in a sparse file."""
    path = folder / "fixed"
    with open(path, "wb") as out:
        out.truncate(4 * GIB)
    return ps.FixedLengthRecordDataset(str(path), 4 * GIB)


# --- images ----------------------------------------------------------------------------


def png(width, height, rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    deflate = zlib.compressobj(9)
    row = bytes(1 + 4 * width)
    data = b"".join(deflate.compress(row) for _ in range(rows)) + deflate.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@bomb
def png_by_header(ps, folder):
    """An image of 65535 x 65535 with 16 rows: 17 GB."""
    return ps.Dataset.from_tensors(png(65535, 65535, 16)).map(ps.ops.decode_png)


@bomb
def png_of_zeros(ps, folder):
    """An image of 8000 x 8000 with all its rows: 256 MB, in 0.3 MB."""
    return ps.Dataset.from_tensors(png(8000, 8000, 8000)).map(ps.ops.decode_png)


def jpeg(width, height, scans=1):
    def segment(kind, data):
        return bytes((0xFF, kind)) + struct.pack(">H", len(data) + 2) + data

    progressive = scans > 1
    tables = segment(0xDB, b"\0" + b"\1" * 64)
    tables += segment(0xC4, b"\0\1" + bytes(15) + b"\0") + segment(0xC4, b"\x10\1" + bytes(15) + b"\0")
    frame = segment(0xC2 if progressive else 0xC0, struct.pack(">BHHB", 8, height, width, 1) + b"\1\x11\0")
    scan = segment(0xDA, b"\1\1\0\0" + (b"\0" if progressive else b"\x3f") + b"\0") + bytes(100)
    return b"\xff\xd8" + tables + frame + scan * scans + b"\xff\xd9"


@bomb
def jpeg_by_header(ps, folder):
    """An image of 65500 x 65500 with 100 bytes of data: 4 GB."""
    return ps.Dataset.from_tensors(jpeg(65500, 65500)).map(ps.ops.decode_jpeg)


@bomb
def jpeg_of_scans(ps, folder):
    """A progressive image of 4000 x 4000 with 1,000 scans, each of which visits all blocks."""
    return ps.Dataset.from_tensors(jpeg(4000, 4000, scans=1000)).map(ps.ops.decode_jpeg)


# --- arrays and archives -----------------------------------------------------------------


def npy(shape, data=b""):
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + data


@bomb
def npy_of_16_tib(ps, folder):
    """An array of 2^44 bytes, of which 1,000 are there."""
    path = saved(folder, "large.npy", npy("(17592186044416,)", bytes(1000)))
    return ps.NpyDataset(path, ps.TensorSpec([None], "uint8"), rows=False)


@bomb
def npy_that_overflows(ps, folder):
    """An array of 2^32 x 2^32 x 2 bytes, a number that 64 bits do not hold."""
    path = saved(folder, "overflows.npy", npy("(4294967296, 4294967296, 2)", bytes(1000)))
    return ps.NpyDataset(path, ps.TensorSpec([None, None, None], "uint8"), rows=False)


@bomb
def npz_of_zeros(ps, folder):
    """An archive with an array of 256 MiB of zeros, in 0.3 MB."""
    path = folder / "zeros.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w", force_zip64=True) as out:
        out.write(npy("(268435456,)"))
        for _ in range(16):
            out.write(bytes(16 << 20))
    return ps.NpyDataset(str(path), {"x": ps.TensorSpec([None], "uint8")}, rows=False)


def tar_header(name, size):
    header = bytearray(tarfile.TarInfo(name).tobuf())
    header[124:136] = size
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header[:512])
    return bytes(header[:512])


@bomb
def tar_member(ps, folder):
    """A member of 8 GiB in octal, of which 1 KB is there."""
    data = tar_header("a.jpg", b"77777777777\0") + bytes(1024)
    return ps.TarShards(saved(folder, "member.tar", data), ["jpg"])


@bomb
def tar_member_in_base_256(ps, folder):
    """A member of 2^63 - 1 bytes."""
    data = tar_header("a.jpg", b"\x80\0\0\0" + struct.pack(">Q", (1 << 63) - 1)) + bytes(1024)
    return ps.TarShards(saved(folder, "base256.tar", data), ["jpg"])


@bomb
def tar_of_names(ps, folder):
    """A long name of 1 GiB, sparse."""
    path = folder / "names.tar"
    with open(path, "wb") as out:
        header = bytearray(tar_header("a.jpg", b"%011o\0" % GIB))
        header[156:157] = b"L"
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        out.write(header)
        out.truncate(2 * GIB)
    return ps.TarShards(str(path), ["jpg"])


# --- sizes in the definition ---------------------------------------------------------------


@bomb
def huge_batch(ps, folder):
    """Batches of 2^40 numbers."""
    return ps.Dataset.range(1 << 62).batch(1 << 40)


@bomb
def huge_fill(ps, folder):
    """An element of 2^40 numbers from an expression."""
    return ps.Dataset.range(10).map(lambda x: ps.ops.fill([1 << 40], x))


# These keep 1 GiB. They are finite, so that a worker that lets them grow does not end the machine.


def _large_elements(ps):
    """1,000 elements of 1 MiB."""
    return ps.Dataset.range(1000).map(lambda x: ps.ops.fill([1 << 17], x))


@buffer
def huge_shuffle(ps, folder):
    """A buffer of 2^40 elements."""
    return _large_elements(ps).shuffle(1 << 40)


@buffer
def huge_cache(ps, folder):
    """A cache in memory of all elements."""
    return _large_elements(ps).cache().skip(999)


@buffer
def shuffle_of_caches(ps, folder):
    """Elements that a cache and a shuffle buffer share, until the cache is gone."""
    one = lambda x: _large_elements(ps).take(1).cache()  # noqa: E731
    return ps.Dataset.range(1000).flat_map(one).shuffle(1 << 40)


@buffer
def open_datasets(ps, folder):
    """1,000 open datasets with an element of 1 MiB each."""
    return _large_elements(ps).interleave(lambda x: ps.Dataset.from_tensors(x).repeat(), cycle_length=1000)


def read(ps, name, args):
    """Reads a few elements of that bomb. Returns their number, and how the reading ended."""
    begun, read_of_it = time.monotonic(), 0
    try:
        data = {**BOMBS, **BUFFERS}[name](ps, args.folder)
        job = f"bomb-{uuid.uuid4()}"
        for _ in data.distribute("parallel_epochs", args.service, job_name=job, data_transfer_protocol="tcp"):
            read_of_it += 1
            if read_of_it == MOST_ELEMENTS or time.monotonic() > begun + args.seconds:
                break
    except ps.errors.Error as error:
        return read_of_it, f"{type(error).__name__}: {error}"
    return read_of_it, "no error"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bombs", nargs="+", choices=[*BOMBS, *BUFFERS])
    parser.add_argument("--service", required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=10, help="end the reading of one after so long")
    args = parser.parse_args()
    import penstock as ps

    for name in args.bombs:
        begun = time.monotonic()
        elements, ended = read(ps, name, args)
        print(f"{name}: elements={elements} seconds={time.monotonic() - begun:.1f} {ended[:300]}", flush=True)
        for path in args.folder.iterdir():
            path.unlink()


if __name__ == "__main__":
    main()
