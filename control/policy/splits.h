// SPDX-License-Identifier: Apache-2.0
// Which splits a partition gets. Pure: state in, change out.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "control/state/state.h"

namespace penstock::control {

// The split that is handed out as number `k` of [0, count): a permutation drawn
// by a keyed hash, so that none is ever stored. REQUIRES: 0 ≤ k < count.
int64_t PermutedSplit(uint64_t key, int64_t count, int64_t k);

// The key of a provider's permutation in one repetition of an iteration.
uint64_t PermutationKey(uint64_t seed, int64_t iteration_repetition, ProviderKey provider);

// How many splits to give at once to one of `partitions`: what it asks for, but
// never so many that near the end one partition works while others have none;
// at the end one by one.
int64_t SplitBlock(int64_t wanted, int64_t remaining, int64_t partitions);

struct SplitDecision {
  SplitRun answer;                   // splits or no_more, from the ordinal asked for
  std::optional<SplitsGiven> given;  // what is new in it
};

// Answers `request`: what was given already, or the next splits; of a partition
// that is a shard, those of the shard alone; under a deterministic order every
// `partitions`th. InvalidArgument
// for a provider that the dataset does not have; OutOfRange for an ordinal or a repetition that
// was retired, or an ordinal that lies behind the next one. Of a pass that is over a partition that
// comes to it now gets none.
// REQUIRES: the partition exists.
absl::StatusOr<SplitDecision> DecideSplits(const JobRecord& job, const IterationState& iteration,
                                           const SplitRequest& request);

}  // namespace penstock::control
