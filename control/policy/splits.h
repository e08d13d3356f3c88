// SPDX-License-Identifier: Apache-2.0
// Decides which splits a partition gets. Pure functions, from the state to a change.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "control/state/state.h"

namespace penstock::control {

// Returns the number of the split that is given out as the `k`-th of `count` splits, counted from
// 0. A keyed hash computes this permutation of [0, count), which is never stored. REQUIRES: 0 ≤ k <
// count.
int64_t PermutedSplit(uint64_t key, int64_t count, int64_t k);

// Returns the key of a provider's permutation in one repetition of an iteration.
uint64_t PermutationKey(uint64_t seed, int64_t iteration_repetition, ProviderKey provider);

// Returns how many splits to give at once to one of `partitions` partitions: `wanted`, or fewer
// near the end, so that no partition still has many splits while others have none. At the very end,
// splits are given one by one.
int64_t SplitBlock(int64_t wanted, int64_t remaining, int64_t partitions);

struct SplitDecision {
  SplitRun answer;                   // splits or no_more, from the requested ordinal
  std::optional<SplitsGiven> given;  // the new part of the answer
};

// Answers `request` with the splits that were already given for it, or with new ones. A partition
// that is a shard gets the splits of the shard. In a deterministic order, the partitions get splits
// in rotation. Any other partition gets the next splits. A partition that reaches a pass that is
// over gets no splits. Returns InvalidArgument for a provider that the dataset does not have.
// Returns OutOfRange for an ordinal or a repetition that was retired, and for an ordinal after the
// next one. REQUIRES: the partition exists.
absl::StatusOr<SplitDecision> DecideSplits(const JobRecord& job, const IterationState& iteration,
                                           const SplitRequest& request);

}  // namespace penstock::control
