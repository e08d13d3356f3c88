// SPDX-License-Identifier: Apache-2.0
// What a reader of a job saves of itself: who it is, what it took, and what else
// it takes to go on without the service that it read from.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "control/protocol/index_set.h"
#include "control/protocol/job_terms.h"
#include "control/protocol/restore.h"
#include "control/protocol/session_messages.h"
#include "dataplane/dataset/state_bytes.h"
#include "penstock/ids.h"

namespace penstock::client {

// By partition.
using IndicesByPartition = std::map<PartitionId, IndexSet>;

std::vector<control::PartitionIndices> ToMessage(const IndicesByPartition& delivered);

struct ReaderState {
  struct Repetition {
    int64_t number = 0;
    IndicesByPartition delivered;
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

// The whole of it, for a restore by any number of ranks.
struct JobState {
  ReaderState reader;
  // All below only if reading had begun.
  uint64_t job_mark = 0;  // of its token: tells it from the jobs of other services
  control::Heard heard;   // of its dispatcher, as it was saved
  uint64_t seed = 0;
  uint64_t dataset = 0;                         // fingerprint of what the workers run
  control::JobTerms terms;                      // those that decide what partitions yield
  std::vector<control::SavedRepetition> saved;  // parallel to the reader's repetitions
};

void Write(const JobState& state, StateWriter& writer);
absl::StatusOr<JobState> ReadJobState(StateReader& reader);

// FNV-1a of a job's token.
uint64_t MarkOfJob(std::string_view token);
control::RankState ToRankState(const JobState& state);

}  // namespace penstock::client
