// SPDX-License-Identifier: Apache-2.0
// The state that a reader of a job saves: the reader's identity, its deliveries, and everything
// else that another service needs in order to continue the reading.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/index_set.h"
#include "control/protocol/job_terms.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/restore.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "penstock/ids.h"

namespace penstock::client {

// Indices by partition.
using IndicesByPartition = std::map<PartitionId, IndexSet>;

std::vector<control::PartitionIndices> ToMessage(const IndicesByPartition& delivered);

struct ReaderState {
  struct Repetition {
    int64_t number = 0;
    IndicesByPartition delivered;
  };
  uint64_t save = 0;     // number of the state, for Commit(); 0: never committed
  JobId job;             // 0: reading had not begun
  std::string job_name;  // anonymous jobs have a name too
  ClientId client;
  // The present repetition is last. The other repetitions were not completely committed.
  std::vector<Repetition> repetitions;
};

void Write(const ReaderState& state, StateWriter& writer);
// DataLoss for bytes that Write() cannot have produced.
absl::StatusOr<ReaderState> ReadReaderState(StateReader& reader);

// A complete state, for a restore by any number of ranks.
struct JobState {
  ReaderState reader;
  // All members below are set only if reading had begun.
  uint64_t job_mark = 0;  // made from the job's token; differs between two services
  control::Heard heard;   // last heard from the dispatcher when the state was saved
  uint64_t seed = 0;
  uint64_t dataset = 0;                         // fingerprint of the dataset that workers run
  control::JobTerms terms;                      // the terms that determine the partitions' elements
  std::vector<control::SavedRepetition> saved;  // parallel to the reader's repetitions
};

void Write(const JobState& state, StateWriter& writer);
absl::StatusOr<JobState> ReadJobState(StateReader& reader);

// Returns the FNV-1a hash of a job's token.
uint64_t MarkOfJob(std::string_view token);
control::RankState ToRankState(const JobState& state);

// The merged states of all ranks, for a job under another service or launch.
struct MergedStates {
  control::Restoration restoration;
  std::string job_name;
  std::string run_id;
  uint64_t seed = 0;
  int64_t repetition = 0;  // the lowest repetition that a rank was reading
};
// Merges states for readers that read, under `terms`, the workers' dataset with the fingerprint
// `dataset`; nullopt if no rank had begun to read. `name`: same as for MergeRankStates().
// InvalidArgument if the states were saved under terms that do not match `terms`.
absl::StatusOr<std::optional<MergedStates>> MergeStates(absl::Span<const JobState> ranks,
                                                        const control::JobTerms& terms,
                                                        uint64_t dataset, uint64_t name);

}  // namespace penstock::client
