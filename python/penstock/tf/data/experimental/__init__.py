# SPDX-License-Identifier: Apache-2.0
"""tf.data.experimental's names."""

from .... import AUTOTUNE, INFINITE_CARDINALITY, SHARD_HINT, UNKNOWN_CARDINALITY  # noqa: F401
from ....data import service  # noqa: F401
from ....distribute import AutoShardPolicy  # noqa: F401
