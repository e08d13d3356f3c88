// SPDX-License-Identifier: Apache-2.0
// Merges the states of all ranks into one state, from which any number of ranks can resume:
// docs/exactly_once.md, "States of all ranks". Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/protocol/saved_reading.h"

namespace penstock::control {

// The rule that a test breaks on purpose, to check that the tests notice the broken rule.
enum class BrokenMerge : uint8_t {
  kNone = 0,
  kMissingState,  // a rank's state may be missing         → doubled
  kClaimedTwice,  // two states may contain an element     → doubled
  kOlderState,    // states of different commits           → lost
};

// The part of one rank's state that concerns its job.
struct RankState {
  struct Repetition {
    SavedRepetition saved;
    std::vector<PartitionIndices> delivered;  // to this rank
  };
  ClientId client;
  JobId job;
  uint64_t job_mark = 0;  // unlike `job`, also differs between services
  std::string job_name;
  bool at_least_once = false;           // two states of the job may contain the same element
  std::vector<Repetition> repetitions;  // ascending; earlier ones are wholly committed
};

// Merges the states; `name` becomes Restoration::name. Returns InvalidArgument, with the job and
// the client, if
// - the states belong to different jobs, or two states belong to the same client;
// - the state of a rank that was reading is missing;
// - two states contain the same element;
// - a state is older than the last commit of its rank at the time when another state was saved, or
//   belongs to a rank that was declared dead and contains elements that this rank had not
//   committed;
// - the states belong to different rounds of a coordinated read, or to its last rounds.
absl::StatusOr<Restoration> MergeRankStates(absl::Span<const RankState> states, uint64_t name,
                                            BrokenMerge broken = BrokenMerge::kNone);

// Drops the bookmarks, for an edited dataset: its partitions are made again from their first
// splits. InvalidArgument for a coordinated read, whose earlier elements are counted from its
// bookmarks. InvalidArgument also if passes are over.
absl::Status ForgetBookmarks(Restoration& restoration);

}  // namespace penstock::control
