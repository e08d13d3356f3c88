// SPDX-License-Identifier: Apache-2.0
// The states of all ranks made one, so that any number of ranks goes on behind
// them: docs/exactly_once.md, "States of all ranks". Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/protocol/saved_reading.h"

namespace penstock::control {

// A rule to break on purpose, to see that the tests notice it.
enum class BrokenMerge : uint8_t {
  kNone = 0,
  kMissingState,  // a rank's state may be missing         → doubled
  kClaimedTwice,  // two states may contain an element     → doubled
  kOlderState,    // states of different commits           → lost
};

// What one rank's state says of its job.
struct RankState {
  struct Repetition {
    SavedRepetition saved;
    std::vector<PartitionIndices> delivered;  // to this rank
  };
  ClientId client;
  JobId job;
  uint64_t job_mark = 0;  // differs between jobs of different services too
  std::string job_name;
  bool at_least_once = false;           // two of its states may contain the same element
  std::vector<Repetition> repetitions;  // ascending; earlier ones are wholly committed
};

// Merges them, under `name`. InvalidArgument, naming job and client:
// - they are of several jobs, or two are of one client;
// - the state of a rank that was reading is missing;
// - two contain the same element;
// - one is older than what its rank had committed when another one was saved,
//   or is of a rank that was declared dead and contains more than it had committed;
// - they are of a coordinated read, and of different rounds or of the last ones.
absl::StatusOr<Restoration> MergeRankStates(absl::Span<const RankState> states, uint64_t name,
                                            BrokenMerge broken = BrokenMerge::kNone);

// For a dataset that was edited: partitions are made from their first splits.
// InvalidArgument for a coordinated read, whose elements before are counted from
// its bookmarks, and where passes are over.
absl::Status ForgetBookmarks(Restoration& restoration);

}  // namespace penstock::control
