// SPDX-License-Identifier: Apache-2.0
// What OfAllRanks() makes, as Restore() reads it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/node_iterator.h"
#include "penstock/states_of_ranks.h"

namespace penstock {

struct StatesOfRanks {
  std::vector<State> states;
  RestoreOptions options;
  uint64_t name = 0;  // of states and run_id, in whatever order the states were given
};

bool IsOfAllRanks(const State& state);
// InvalidArgument for no states or a negative skip_steps; DataLoss for bytes that
// OfAllRanks() does not make.
absl::StatusOr<StatesOfRanks> ReadStatesOfRanks(const State& all);

// RestoreIterator() (node_iterator.h) of a position whose dataset may differ in
// the nodes of these names.
absl::Status RestoreEdited(NodeIterator& iterator, const Dataset& dataset, std::string_view bytes,
                           absl::Span<const std::string> allow);

}  // namespace penstock
