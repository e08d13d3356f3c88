// SPDX-License-Identifier: Apache-2.0
// Restores the states of all ranks on a different service, with any number of ranks and workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "penstock/iterator.h"

#pragma GCC visibility push(default)
namespace penstock {

struct RestoreOptions {
  // The name of this launch. Ranks that restore the same states under the same run_id share one
  // job.
  std::string run_id;
  // The nodes of this dataset ("Map#3", as Explain() names them) that may differ from the nodes of
  // the dataset from which the states were saved. Delivered elements are identified by their
  // indices, so an edit must not change the number of elements before them in a partition.
  std::vector<std::string> allow;
  // The number of elements that each rank skips, as if they had been delivered to it. ≥ 0.
  int64_t skip_steps = 0;
};

// Combines the states that all ranks saved at one step, in any order, into one state. Each rank of
// the new launch passes the combined state to Iterator::Restore(). The service from which the
// states were saved is not needed. Every element is then in exactly one history: the history of the
// rank whose state contains it, or the history of a rank of the new launch.
//
// Restore() returns InvalidArgument in these cases: a rank's state is missing; two states contain
// the same element, are of the same rank, or are of different jobs; a rank had already committed a
// later state when another rank's state was saved; the dataset differs. The first Next() returns
// FailedPrecondition if a job of that name and run_id was not created from these states, or if a
// job of that name is still being read under a different run_id.
//
// Nodes after Distribute continue from their positions in the state of the rank that had read the
// least. A static mode keeps its number of shards.
//
// The states of a coordinated read must all be of one step, and that step must come before the last
// rounds. Rounds are counted from 0 again.
//
// In order kDeterministic, steps are counted from 0 again (see StepToken), and the elements that
// are in no state are distributed again in their order. If the states are of one step
// (StepToken::round), reading continues as if there had been no restore. Otherwise the elements of
// earlier steps that some states lack come first. No element is delivered twice.
State MergeRankStates(absl::Span<const State> states, const RestoreOptions& options = {});

// The name before 0.9. Release 0.10 removes it.
[[deprecated("MergeRankStates")]] inline State OfAllRanks(absl::Span<const State> states,
                                                          const RestoreOptions& options = {}) {
  return MergeRankStates(states, options);
}

}  // namespace penstock
#pragma GCC visibility pop
