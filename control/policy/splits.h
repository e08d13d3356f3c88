// SPDX-License-Identifier: Apache-2.0
// Decides which splits a partition gets. Pure: state in, change out.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "control/state/state.h"

namespace penstock::control {

// Returns the split that is handed out as number `k` of [0, count). The permutation is computed by
// a keyed hash and never stored. REQUIRES: 0 ≤ k < count.
int64_t PermutedSplit(uint64_t key, int64_t count, int64_t k);

// Returns the key of a provider's permutation in one repetition of an iteration.
uint64_t PermutationKey(uint64_t seed, int64_t iteration_repetition, ProviderKey provider);

// Returns how many splits to give at once to one of `partitions`: the number it wants, but few
// enough that near the end no partition is still working while others have nothing to do. At the
// very end splits are given one by one.
int64_t SplitBlock(int64_t wanted, int64_t remaining, int64_t partitions);

struct SplitDecision {
  SplitRun answer;                   // splits or no_more, from the ordinal asked for
  std::optional<SplitsGiven> given;  // the part of it that is new
};

// Answers `request` with the splits that were given already, or with the next ones: for a partition
// that is a shard, those of the shard; under a deterministic order, every `partitions`th. A
// partition that reaches a pass that is over gets no splits. Returns InvalidArgument for a provider
// that the dataset does not have. Returns OutOfRange for an ordinal or a repetition that was
// retired, and for an ordinal after the next one. REQUIRES: the partition exists.
absl::StatusOr<SplitDecision> DecideSplits(const JobRecord& job, const IterationState& iteration,
                                           const SplitRequest& request);

}  // namespace penstock::control
