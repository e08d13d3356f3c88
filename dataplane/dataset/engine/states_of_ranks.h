// SPDX-License-Identifier: Apache-2.0
// A state as Restore() reads it: of one iterator, or of all ranks (MergeRankStates).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/engine/state_head.h"
#include "dataplane/dataset/engine/state_sections.h"
#include "penstock/states_of_ranks.h"

namespace penstock {

struct StateToRestore {
  StateHead head;
  std::string position;  // of the nodes
  StateExchange::TakenUp sections;
  RestoreOptions options;
};

// InvalidArgument if the bytes are not a state. For the states of all ranks, also if there are no
// states, if skip_steps is negative, or if the states cannot be merged. DataLoss for bytes that
// neither Save() nor MergeRankStates() makes.
absl::StatusOr<StateToRestore> ReadStateToRestore(const State& state);

// Does the same as RestoreIterator() (node_iterator.h), but the position's dataset may differ in
// the nodes named in `allow`.
absl::Status RestoreEdited(NodeIterator& iterator, const Dataset& dataset, std::string_view bytes,
                           absl::Span<const std::string> allow);

}  // namespace penstock
