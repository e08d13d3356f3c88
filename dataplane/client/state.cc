// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/state.h"

#include <limits>
#include <utility>

#include "penstock/status.h"

namespace penstock::client {
namespace {

constexpr uint64_t kVersion = 2;

void Write(const Taken& taken, StateWriter& writer) {
  writer.WriteUnsigned(taken.size());
  for (const auto& [partition, indices] : taken) {
    writer.WriteUnsigned(partition.value());
    writer.WriteUnsigned(indices.intervals().size());
    Index at = 0;  // distances are short, and so are their bytes
    for (const IndexSet::Interval& interval : indices.intervals()) {
      writer.WriteUnsigned(interval.begin - at);
      writer.WriteUnsigned(interval.end - interval.begin);
      at = interval.end;
    }
  }
}

absl::StatusOr<IndexSet> ReadIndices(StateReader& reader) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  IndexSet indices;
  ASSIGN_OR_RETURN(const uint64_t intervals, reader.ReadUnsigned());
  uint64_t at = 0;
  for (uint64_t i = 0; i < intervals; ++i) {
    ASSIGN_OR_RETURN(const uint64_t gap, reader.ReadUnsigned());
    ASSIGN_OR_RETURN(const uint64_t length, reader.ReadUnsigned());
    if (gap > kMost - at || length == 0 || length > kMost - at - gap || (i > 0 && gap == 0)) {
      return absl::DataLossError("the state of Distribute has indices out of order");
    }
    indices.Add(static_cast<Index>(at + gap), static_cast<Index>(at + gap + length));
    at += gap + length;
  }
  return indices;
}

absl::StatusOr<Taken> ReadTaken(StateReader& reader) {
  Taken taken;
  ASSIGN_OR_RETURN(const uint64_t partitions, reader.ReadUnsigned());
  for (uint64_t p = 0; p < partitions; ++p) {
    ASSIGN_OR_RETURN(const uint64_t partition, reader.ReadUnsigned());
    ASSIGN_OR_RETURN(IndexSet indices, ReadIndices(reader));
    if (partition == 0 || !taken.emplace(PartitionId(partition), std::move(indices)).second) {
      return absl::DataLossError("the state of Distribute names a partition twice, or number 0");
    }
  }
  return taken;
}

}  // namespace

std::vector<control::PartitionIndices> ToMessage(const Taken& taken) {
  std::vector<control::PartitionIndices> message;
  for (const auto& [partition, indices] : taken) message.push_back({partition, indices});
  return message;
}

void Write(const ReaderState& state, StateWriter& writer) {
  writer.WriteUnsigned(kVersion);
  writer.WriteUnsigned(state.save);
  writer.WriteUnsigned(state.job.value());
  if (!state.job) return;
  writer.WriteString(state.job_name);
  writer.WriteUnsigned(state.client.value());
  writer.WriteUnsigned(state.repetitions.size());
  for (const ReaderState::Repetition& repetition : state.repetitions) {
    writer.WriteInt(repetition.number);
    Write(repetition.taken, writer);
  }
}

absl::StatusOr<ReaderState> ReadReaderState(StateReader& reader) {
  ReaderState state;
  ASSIGN_OR_RETURN(const uint64_t version, reader.ReadUnsigned());
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the state of Distribute has version ", version,
                                                   "; this program reads ", kVersion));
  }
  ASSIGN_OR_RETURN(state.save, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(const uint64_t job, reader.ReadUnsigned());
  state.job = JobId(job);
  if (!state.job) return state;
  ASSIGN_OR_RETURN(const std::string_view name, reader.ReadString());
  state.job_name = name;
  ASSIGN_OR_RETURN(const uint64_t client, reader.ReadUnsigned());
  state.client = ClientId(client);
  ASSIGN_OR_RETURN(const uint64_t repetitions, reader.ReadUnsigned());
  for (uint64_t r = 0; r < repetitions; ++r) {
    ReaderState::Repetition& repetition = state.repetitions.emplace_back();
    ASSIGN_OR_RETURN(repetition.number,
                     reader.ReadIntIn(0, std::numeric_limits<int64_t>::max(), "the repetition"));
    ASSIGN_OR_RETURN(repetition.taken, ReadTaken(reader));
  }
  if (!state.client || state.repetitions.empty()) {
    return absl::DataLossError("the state of Distribute names no client or no repetition");
  }
  return state;
}

}  // namespace penstock::client
