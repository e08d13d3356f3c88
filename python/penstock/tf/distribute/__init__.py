# SPDX-License-Identifier: Apache-2.0
"""tf.distribute's names."""

from ...distribute import (  # noqa: F401
    DistributedDataset,
    DistributedIterator,
    DistributedValues,
    InputContext,
    InputOptions,
    InputReplicationMode,
    MirroredStrategy,
    MultiWorkerMirroredStrategy,
    ReduceOp,
    ReplicaContext,
    Strategy,
    get_replica_context,
    in_cross_replica_context,
)
from . import experimental  # noqa: F401
