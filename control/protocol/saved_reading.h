// SPDX-License-Identifier: Apache-2.0
// The progress of a job's reading, in a form that outlives the job's dispatcher. States contain it.
// A job that resumes from the states of all ranks begins with it. See docs/exactly_once.md, "States
// of all ranks".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/protocol/index_set.h"
#include "control/protocol/lives.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/positions.h"
#include "control/protocol/requests.h"
#include "control/protocol/shard.h"

namespace penstock::control {

// By provider: the first repetition that is not over. All splits of earlier repetitions have been
// given out and are no longer needed.
using PassesOver = std::map<int32_t, int64_t>;

// The progress of one repetition, as its dispatcher knew it.
struct SavedRepetition {
  struct Position {
    Index index = 0;
    std::string bytes;
    friend bool operator==(const Position&, const Position&) = default;
  };
  struct Partition {
    Index committed_below = 0;        // all indices below are in a history
    std::vector<SplitRun> given;      // from each provider's first retained ordinal on
    std::vector<Position> bookmarks;  // some of them, ascending, including the oldest
    friend bool operator==(const Partition&, const Partition&) = default;
  };
  struct Reader {
    ClientId client;
    bool gone = false;                        // left or died; `committed` is its whole history
    int64_t committed_count = 0;              // elements
    std::vector<PartitionIndices> committed;  // those at or above committed_below
    int64_t consumer = -1;                    // its number, if there are `positions`
    friend bool operator==(const Reader&, const Reader&) = default;
  };
  int64_t repetition = 0;
  uint64_t version = 0;       // higher than in older data of the same job
  bool finished = false;      // all is committed; the repetition is not read again
  Division division;          // in a static mode
  int64_t num_consumers = 0;  // of a coordinated read; Reader::committed then contains row numbers
  // For order kDeterministic with several consumers; Reader::committed then contains row numbers.
  std::optional<protocol::Positions> positions;
  std::vector<int64_t> leads;         // by partition, if the job was itself restored; missing: 0
  std::vector<Partition> partitions;  // [0] is partition 1; none: not begun
  PassesOver passes_over;
  std::vector<Reader> readers;
  friend bool operator==(const SavedRepetition&, const SavedRepetition&) = default;
};

struct GetReadingRequest {
  JobId job;
  int64_t repetition = 0;
  // The most recent dispatcher process that the reader has heard from. An answer from a different
  // process would not match the reader's state.
  Heard heard;
};

// The merged states of all ranks (restore.h makes it).
struct Restoration {
  struct Partition {
    IndexSet committed;  // in the histories of the ranks
    std::vector<SplitRun> given;
    std::vector<SavedRepetition::Position> bookmarks;
    // For a coordinated read: the number of committed elements after the bookmark, or after the
    // beginning. The new job's indices are counted from the end of these elements.
    int64_t lead = 0;
    friend bool operator==(const Partition&, const Partition&) = default;
  };
  struct Repetition {
    int64_t number = 0;
    bool finished = false;
    Division division;
    std::vector<Partition> partitions;
    PassesOver passes_over;
    friend bool operator==(const Repetition&, const Repetition&) = default;
  };
  uint64_t name = 0;  // equal for all ranks of one launch that restore the same states
  std::vector<Repetition> repetitions;  // ascending
  friend bool operator==(const Restoration&, const Restoration&) = default;
};

struct RestoreJobRequest {
  GetOrCreateJobRequest job;
  Restoration restoration;
};

}  // namespace penstock::control
