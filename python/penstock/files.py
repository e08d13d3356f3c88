# SPDX-License-Identifier: Apache-2.0
"""Datasets that read files.

`filenames`: one name, several names, a dataset of names, or, inside a traced function, an element that is a name.
"""

import os

from . import _core, expr, spec
from .dataset import AUTOTUNE, Dataset
from .sources import file_names


def TFRecordDataset(filenames, compression_type=None, buffer_size=None, num_parallel_reads=None, name=None):
    """Records of TFRecord files as scalar strings. Their CRC is checked."""
    return _of_files(filenames, num_parallel_reads, lambda names: _core.Dataset.tfrecord(names, compression_type or ""))


def TextLineDataset(filenames, compression_type=None, buffer_size=None, num_parallel_reads=None, name=None):
    """Lines of text files without their line breaks, as scalar strings."""
    return _of_files(
        filenames, num_parallel_reads, lambda names: _core.Dataset.text_line(names, compression_type or "")
    )


def FixedLengthRecordDataset(
    filenames,
    record_bytes,
    header_bytes=None,
    footer_bytes=None,
    buffer_size=None,
    compression_type=None,
    num_parallel_reads=None,
    name=None,
):
    """Records of `record_bytes` each, as scalar strings."""
    return _of_files(
        filenames,
        num_parallel_reads,
        lambda names: _core.Dataset.fixed_length_record(
            names, record_bytes, header_bytes or 0, footer_bytes or 0, compression_type or ""
        ),
    )


def TarShards(filenames, fields, url=False, skip_incomplete=False):
    """Samples of tar files that WebDataset has written: dicts with "__key__" and a scalar string per field."""
    return _of_files(
        filenames, None, lambda names: _core.Dataset.tar_shards(names, list(fields), url, skip_incomplete)
    )


def TokenShards(
    filenames, length, dtype="uint16", stride=None, with_next_token=False, drop_remainder=True, header_bytes=0
):
    """Windows of `length` tokens from files that contain only tokens."""
    return _of_files(
        filenames,
        None,
        lambda names: _core.Dataset.token_shards(
            names, length, dtype, stride, with_next_token, drop_remainder, header_bytes
        ),
    )


def NpyDataset(filenames, element_spec, rows=True):
    """Rows of arrays that NumPy has saved (.npy, or .npz with a dict as spec), or the arrays of whole files."""
    plain = spec.plain(element_spec)
    return _of_files(filenames, None, lambda names: _core.Dataset.npy(names, plain, rows), element_spec)


def ParquetDataset(filenames, columns):
    """Rows of Parquet files as dicts of the named columns; needs a build with Arrow."""
    plain = spec.plain(columns)
    return _of_files(filenames, None, lambda names: _core.Dataset.parquet(names, plain), columns)


def ImageDirectory(root, shuffle=False, seed=None):
    """{"image": a file's contents, "label": int64, "path": its name} of the image files in subdirectories."""
    return Dataset(_core.Dataset.image_directory(os.fspath(root), shuffle, seed))


# --- Inside ------------------------------------------------------------------------------------


def _of_files(filenames, parallel, make, like=None):
    if isinstance(filenames, Dataset):
        return filenames.interleave(
            lambda name: Dataset(make(name), like), cycle_length=1 if parallel in (None, AUTOTUNE) else parallel
        )
    if isinstance(filenames, expr.Expr):
        return Dataset(make(filenames), like)
    if parallel not in (None, 1, AUTOTUNE):
        names = Dataset.from_tensor_slices(file_names(filenames))
        return names.interleave(lambda name: Dataset(make(name), like), cycle_length=parallel)
    return Dataset(make(file_names(filenames)), like)
