// SPDX-License-Identifier: Apache-2.0
// Where a worker begins to replay a partition: at a bookmark that it can read.
#pragma once

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "control/protocol/iteration_record.h"
#include "control/protocol/message_parts.h"
#include "control/state/state.h"

namespace penstock::control {

// Returns whether a worker that reads `readable` can read a bookmark that has `versions`.
bool CanRead(absl::Span<const PositionVersions> readable,
             absl::Span<const PositionVersion> versions);

// Returns the bookmark from which a worker that reads `readable` replays the partition; nullopt: it
// begins at the start. `newest`: the newest bookmark that the protocol allows. If the worker cannot
// read it, it gets the newest earlier one that it can read, or else begins at the start, if all
// splits of the partition are still known. If none of this is possible, returns `newest`: the
// worker says that it cannot read it, and the partition is placed on another worker.
std::optional<protocol::Bookmark> ReplayStart(const IterationState& iteration,
                                              PartitionId partition,
                                              const protocol::Bookmark& newest,
                                              absl::Span<const PositionVersions> readable);

}  // namespace penstock::control
