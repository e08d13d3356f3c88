// SPDX-License-Identifier: Apache-2.0
// A position in a partition, and the partition's splits that a replay from there needs.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/graph/state_bytes.h"

namespace penstock {

struct ReplayPoint {
  std::string position;  // as SaveIterator() writes it
  StateWriter::SplitsNeeded splits;
};
absl::StatusOr<ReplayPoint> SaveForReplay(NodeIterator& iterator, const Dataset& dataset);

}  // namespace penstock
