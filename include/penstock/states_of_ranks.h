// SPDX-License-Identifier: Apache-2.0
// Going on behind the states of all ranks, on another service and with any
// number of ranks and workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "penstock/iterator.h"

namespace penstock {

struct RestoreOptions {
  // Of this launch: ranks that restore the same states under the same run_id go
  // on in one job.
  std::string run_id;
  // Nodes of this dataset ("Map#3", as Explain() names them) that may differ from
  // those that gave the states. What was taken stays taken by its number: no edit
  // may change how many elements a partition has before that.
  std::vector<std::string> allow;
  // So many elements are passed over by each rank, as if it had taken them.
  int64_t skip_steps = 0;
};

// The states that all ranks saved at one step, in any order, as one that each
// rank of the new launch gives to Iterator::Restore(). Nothing of the service
// that they were saved from is needed. Every element is then in exactly one
// history: that of the rank whose state contains it, or of one that reads now.
//
// Restore() says InvalidArgument if the state of a rank is missing, if two
// contain the same element, are of one rank or of different jobs, if one is
// older than what its rank had committed when another one was saved, or if the
// dataset is another one. The next Next() says FailedPrecondition if the job's
// name is in use for other states, or is still read under another run_id.
//
// What stands behind Distribute goes on from the positions of the rank that was
// least far. Shards of a static mode stay as many as they were. States of a
// coordinated read must be of one step, before the last rounds; rounds are counted
// from 0 again. Steps of order kDeterministic, too (StepToken), where what no state has is dealt
// out anew: as if nothing had happened where the states are of one step (StepToken::round); else
// what some of them lack of the steps before comes first, and nothing twice.
State OfAllRanks(absl::Span<const State> states, const RestoreOptions& options = {});

}  // namespace penstock
