#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes expected.txt and specs.txt: TensorFlow's results for the pipelines of pipelines.py.

    ./run deps peers tfdata
    build/peers/tfdata/bin/python tests/dataplane/dataset/tensorflow/write_expected.py          # --check: compares only

pipelines_test.cc (the same pipelines in C++) and tests/python/comparison_test.py (the same file of pipelines) compare
with Penstock, without TensorFlow. A new pipeline goes into pipelines.py and pipelines_*.cc under one name. Each is a
line

    name cardinality=N            (with " any_order" where the order is random)

and its elements, one a line after two spaces, as text_of.py here and text_of.h in C++ write them. specs.txt has their
element_spec, which only Python compares.
"""
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import tensorflow as tf  # noqa: E402

from pipelines import DATA, PIPELINES  # noqa: E402
from text_of import lines_of, spec_text  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def write_data():
    """Writes the files that sources read; they are committed, like expected.txt."""
    DATA.mkdir(exist_ok=True)
    (DATA / "a.txt").write_bytes(b"a0\na1\r\n\na3\n")
    (DATA / "b.txt").write_bytes(b"b0\nb1\nb2")
    (DATA / "fixed.bin").write_bytes(b"HHaaaabbbbccccFF")
    records = [b"r0", b"", b"r2 is longer"]
    for name, compression in (("a.tfrecord", ""), ("a.tfrecord.gz", "GZIP"), ("a.tfrecord.zlib", "ZLIB")):
        if (DATA / name).exists():
            continue  # compressed files differ between releases of zlib
        with tf.io.TFRecordWriter(str(DATA / name), compression) as writer:
            for record in records:
                writer.write(record)
    with tf.io.TFRecordWriter(str(DATA / "b.tfrecord")) as writer:
        writer.write(b"of b")


def main():
    write_data()
    head = f"# TensorFlow {tf.__version__}; written by write_expected.py"
    lines, specs = [head], [head]
    for name, (make, any_order) in PIPELINES.items():
        dataset = make()
        lines += lines_of(name, dataset, any_order)
        specs.append(f"{name} {spec_text(dataset.element_spec)}")
    for file, written in ((HERE / "expected.txt", lines), (HERE / "specs.txt", specs)):
        text = "\n".join(written) + "\n"
        if "--check" not in sys.argv[1:]:
            file.write_text(text)
        elif file.read_text() != text:
            sys.exit(f"{file.name} is not what TensorFlow {tf.__version__} gives: run this without --check")
    print(f"{len(PIPELINES)} pipelines")


if __name__ == "__main__":
    main()
