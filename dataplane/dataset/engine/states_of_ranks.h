// SPDX-License-Identifier: Apache-2.0
// The state that MergeRankStates() makes, as Restore() reads it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "penstock/states_of_ranks.h"

namespace penstock {

struct StatesOfRanks {
  std::vector<State> states;
  RestoreOptions options;
  uint64_t name = 0;  // hash of states and run_id; the order of the states does not matter
};

bool IsOfAllRanks(const State& state);
// InvalidArgument for no states or a negative skip_steps; DataLoss for bytes that MergeRankStates()
// does not make.
absl::StatusOr<StatesOfRanks> ReadStatesOfRanks(const State& all);

// Does the same as RestoreIterator() (node_iterator.h), but the position's dataset may differ in
// the nodes named in `allow`.
absl::Status RestoreEdited(NodeIterator& iterator, const Dataset& dataset, std::string_view bytes,
                           absl::Span<const std::string> allow);

}  // namespace penstock
