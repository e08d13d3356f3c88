// SPDX-License-Identifier: Apache-2.0
// Where the reading of a job stands, in a form that outlives the dispatcher it
// was read from: what a state holds of it, and what a job begins with that goes
// on behind the states of all ranks. docs/exactly_once.md, "States of all ranks".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/protocol/index_set.h"
#include "control/protocol/positions.h"
#include "control/protocol/session_messages.h"
#include "control/protocol/shard.h"

namespace penstock::control {

// By provider: repetitions below are over, all their splits were given and are needed no more.
using PassesOver = std::map<int32_t, int64_t>;

// Where one repetition stood, as its dispatcher knew it.
struct SavedRepetition {
  struct Position {
    Index index = 0;
    std::string bytes;
    friend bool operator==(const Position&, const Position&) = default;
  };
  struct Partition {
    Index committed_below = 0;        // all below is in somebody's history
    std::vector<SplitRun> given;      // from each provider's first retained ordinal on
    std::vector<Position> bookmarks;  // some, ascending; the oldest is among them
    friend bool operator==(const Partition&, const Partition&) = default;
  };
  struct Reader {
    ClientId client;
    bool gone = false;                        // it left or died: `committed` is all of its history
    int64_t committed_count = 0;              // elements
    std::vector<PartitionIndices> committed;  // of them those at or above committed_below
    int64_t consumer = -1;                    // under which number, where there are `positions`
    friend bool operator==(const Reader&, const Reader&) = default;
  };
  int64_t repetition = 0;
  uint64_t version = 0;       // of two of one job the higher one knows more
  bool finished = false;      // all is committed: nothing of it is read again
  Division division;          // of a static mode
  int64_t num_consumers = 0;  // of a coordinated read: then sets are of rows
  // Of order kDeterministic with several consumers: then their sets are of rows.
  std::optional<protocol::Positions> positions;
  std::vector<int64_t> leads;         // of partitions, where it was restored itself; shorter: 0
  std::vector<Partition> partitions;  // [0] is partition 1; none: it was not begun
  PassesOver passes_over;
  std::vector<Reader> readers;
  friend bool operator==(const SavedRepetition&, const SavedRepetition&) = default;
};

struct GetReadingRequest {
  JobId job;
  int64_t repetition = 0;
  Heard heard;  // by who has read it; an answer of another life would not fit to what it took
};

// The states of all ranks as one (restore.h makes it).
struct Restoration {
  struct Partition {
    IndexSet committed;  // in the ranks' histories
    std::vector<SplitRun> given;
    std::vector<SavedRepetition::Position> bookmarks;
    // Of a coordinated read: produced behind the bookmark, or the beginning, and committed; the
    // indices of the new job count from there.
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
  uint64_t name = 0;  // the same for all ranks of one launch that restore the same states
  std::vector<Repetition> repetitions;  // ascending
  friend bool operator==(const Restoration&, const Restoration&) = default;
};

struct RestoreJobRequest {
  GetOrCreateJobRequest job;
  Restoration restoration;
};

}  // namespace penstock::control
