// SPDX-License-Identifier: Apache-2.0
// Decides which iteration gets room in a namespace that has too little for all, and which one gives
// room up (docs/fair_shares.md). Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/state/state.h"
#include "penstock/distribute.h"

namespace penstock::control {

// What decides about an iteration's claim to room.
struct Claim {
  IterationId iteration;
  JobShare share;
  int64_t partitions = 0;  // of its job, at work
};

// Returns whether `a` gets room before `b`: the one with the higher priority, then the one with
// fewer partitions per weight, then the older one. An order of all claims.
bool GoesBefore(const Claim& a, const Claim& b);
// Returns whether `from` gives a partition up for `to`, which waits for room: if its priority is
// lower; or if it is equal, and `to`, with one partition more, has no more per weight than `from`
// with one fewer. After such a move, none goes back.
bool GivesUpFor(const Claim& from, const Claim& to);

// Returns the partition that the iteration can best spare; nullopt if none may be taken: its
// partitions are read together (in rounds, in a fixed order), it has none at work, or a reader that
// would have to answer first is disconnected.
std::optional<PartitionId> PartitionToSpare(const State& state, const IterationState& iteration,
                                            const protocol::IterationContext& context);

}  // namespace penstock::control
