// SPDX-License-Identifier: Apache-2.0
// Merges the states of all ranks into one, so that any number of ranks can resume from them:
// docs/exactly_once.md, "States of all ranks". Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/protocol/saved_reading.h"

namespace penstock::control {

// A rule that a test breaks on purpose, to check that the tests notice.
enum class BrokenMerge : uint8_t {
  kNone = 0,
  kMissingState,  // a rank's state may be missing         → doubled
  kClaimedTwice,  // two states may contain an element     → doubled
  kOlderState,    // states of different commits           → lost
};

// The content of one rank's state about its job.
struct RankState {
  struct Repetition {
    SavedRepetition saved;
    std::vector<PartitionIndices> delivered;  // to this rank
  };
  ClientId client;
  JobId job;
  uint64_t job_mark = 0;  // also differs between jobs of different services
  std::string job_name;
  bool at_least_once = false;           // two of its states may contain the same element
  std::vector<Repetition> repetitions;  // ascending; earlier ones are wholly committed
};

// Merges the states, under `name`. Returns InvalidArgument with the job and the client if
// - they are of different jobs, or two are of the same client;
// - the state of a rank that was reading is missing;
// - two contain the same element;
// - one is older than the last commit of its rank when another state was saved, or belongs to a
//   rank that was declared dead and contains more than that rank had committed;
// - they belong to a coordinated read, and to different rounds or to the last rounds.
absl::StatusOr<Restoration> MergeRankStates(absl::Span<const RankState> states, uint64_t name,
                                            BrokenMerge broken = BrokenMerge::kNone);

// Drops the bookmarks, for an edited dataset: partitions are made from their first splits.
// InvalidArgument for a coordinated read, whose earlier elements are counted from its bookmarks,
// and if passes are over.
absl::Status ForgetBookmarks(Restoration& restoration);

}  // namespace penstock::control
