// SPDX-License-Identifier: Apache-2.0
// What a reader of a job saves of itself: who it is, and what it took.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "control/protocol/index_set.h"
#include "control/protocol/session_messages.h"
#include "dataplane/dataset/state_bytes.h"
#include "penstock/ids.h"

namespace penstock::client {

// By partition.
using Taken = std::map<PartitionId, IndexSet>;

std::vector<control::PartitionIndices> ToMessage(const Taken& taken);

struct ReaderState {
  struct Repetition {
    int64_t number = 0;
    Taken taken;
  };
  uint64_t save = 0;     // its number, for Commit(); 0: it is never committed
  JobId job;             // none: reading had not begun
  std::string job_name;  // also of an anonymous job
  ClientId client;
  // The present one last; before it those whose elements were not all committed.
  std::vector<Repetition> repetitions;
};

void Write(const ReaderState& state, StateWriter& writer);
// DataLoss for what Write() does not write.
absl::StatusOr<ReaderState> ReadReaderState(StateReader& reader);

}  // namespace penstock::client
