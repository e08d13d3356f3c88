# SPDX-License-Identifier: Apache-2.0
"""tf.data's names."""

from ... import (  # noqa: F401
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Dataset,
    FixedLengthRecordDataset,
    Iterator,
    Options,
    TextLineDataset,
    TFRecordDataset,
)
from . import experimental  # noqa: F401
