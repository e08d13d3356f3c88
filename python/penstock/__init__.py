# SPDX-License-Identifier: Apache-2.0
"""Penstock: training data with the names of tf.data and its service, without TensorFlow.

    import penstock as ps

    ds = ps.Dataset.range(10).map(lambda x: x * 2).batch(4)
    for batch in ds:
        print(batch.numpy())
"""

# isort: skip_file
from . import dtypes, errors
from . import _core
from . import ops
from .dtypes import DType, as_dtype
from .dtypes import (  # noqa: F401 (made by name)
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .dtypes import bool  # noqa: A004, F401 (as tf.bool)
from .spec import OptionalSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec
from .expr import Expr
from .tensor import RaggedTensor, SparseTensor, Tensor
from .iterator import Iterator
from .dataset import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    SHARD_HINT,
    UNKNOWN_CARDINALITY,
    Dataset,
    Options,
)
from .windows import WindowedDataset
from .files import (
    FixedLengthRecordDataset,
    ImageDirectory,
    NpyDataset,
    ParquetDataset,
    TarShards,
    TextLineDataset,
    TFRecordDataset,
    TokenShards,
)
from .bars import progress
from .picture import Picture, show
from .lost_consumers import LostConsumer, OnLostConsumer
from .functions import py_function, set_python_processes
from . import data, distribute

__version__ = _core.__version__
merge_rank_states = _core.merge_rank_states


def __getattr__(name):
    """Imports the modules that need a framework when they are first used."""
    if name in ("jax", "keras", "torch"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    import sys

    from . import moved

    return moved.find(sys.modules[__name__], name, {"of_all_ranks": "merge_rank_states"})
