// SPDX-License-Identifier: Apache-2.0
// Elements of a placed partition.
#pragma once

#include "control/protocol/message_parts.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/transport.h"

namespace penstock::worker {

inline constexpr IterationId kIteration(7);
inline const control::PlacedPartition kPlaced{kIteration, PartitionId(1), Placement(3)};

// Returns an int64 scalar, its index.
inline transfer::Sent ElementAt(Index index, control::PlacedPartition of = kPlaced) {
  transfer::Sent sent;
  sent.identity = {.iteration = of.iteration,
                   .partition = of.partition,
                   .placement = of.placement,
                   .index = index};
  sent.element = *MakeElement(DefaultPool(), {Tensor(kInt64, {}, &index)}, Spec(Scalar(kInt64)));
  sent.element.set_identity(sent.identity);
  return sent;
}

}  // namespace penstock::worker
