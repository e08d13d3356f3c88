// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/state.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock::client {
namespace {

constexpr uint64_t kVersion = 5;

void Write(const IndicesByPartition& delivered, StateWriter& writer) {
  writer.WriteUnsigned(delivered.size());
  for (const auto& [partition, indices] : delivered) {
    writer.WriteUnsigned(partition.value());
    writer.WriteUnsigned(indices.intervals().size());
    Index at = 0;  // distances are saved, because they take few bytes
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

absl::StatusOr<IndicesByPartition> ReadIndicesByPartition(StateReader& reader) {
  IndicesByPartition delivered;
  ASSIGN_OR_RETURN(const uint64_t partitions, reader.ReadUnsigned());
  for (uint64_t p = 0; p < partitions; ++p) {
    ASSIGN_OR_RETURN(const uint64_t partition, reader.ReadUnsigned());
    ASSIGN_OR_RETURN(IndexSet indices, ReadIndices(reader));
    if (partition == 0 || !delivered.emplace(PartitionId(partition), std::move(indices)).second) {
      return absl::DataLossError("the state of Distribute names a partition twice, or number 0");
    }
  }
  return delivered;
}

// --- Splits, bookmarks, readers ---------------------------------------------------

void Write(const control::SplitRun& run, StateWriter& writer) {
  writer.WriteInt(run.provider);
  writer.WriteInt(run.repetition);
  writer.WriteInt(run.first_ordinal);
  writer.WriteBool(run.no_more);
  writer.WriteUnsigned(run.numbers.size());
  int64_t before = 0;
  for (const int64_t number : run.numbers) {
    writer.WriteInt(number - before);
    before = number;
  }
}

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kMaxPositions = 1 << 20;  // of partitions or consumers of order kDeterministic

absl::StatusOr<control::SplitRun> ReadRun(StateReader& reader) {
  control::SplitRun run;
  ASSIGN_OR_RETURN(const int64_t provider,
                   reader.ReadIntIn(0, std::numeric_limits<int32_t>::max(), "a source"));
  run.provider = static_cast<int32_t>(provider);
  ASSIGN_OR_RETURN(run.repetition, reader.ReadIntIn(0, kMost, "a repetition"));
  ASSIGN_OR_RETURN(run.first_ordinal, reader.ReadIntIn(0, kMost, "an ordinal"));
  ASSIGN_OR_RETURN(run.no_more, reader.ReadBool());
  ASSIGN_OR_RETURN(const uint64_t count, reader.ReadUnsigned());
  int64_t number = 0;
  for (uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const int64_t step, reader.ReadInt());
    if (__builtin_add_overflow(number, step, &number) || number < 0) {
      return absl::DataLossError("the state of Distribute names an impossible split");
    }
    run.numbers.push_back(number);
  }
  return run;
}

void WriteInts(const std::vector<int64_t>& values, StateWriter& writer) {
  writer.WriteUnsigned(values.size());
  for (const int64_t value : values) writer.WriteInt(value);
}

absl::StatusOr<std::vector<int64_t>> ReadInts(StateReader& reader, std::string_view what) {
  std::vector<int64_t> values;
  ASSIGN_OR_RETURN(const uint64_t count, reader.ReadUnsigned());
  for (uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const int64_t value, reader.ReadIntIn(0, kMost, what));
    values.push_back(value);
  }
  return values;
}

void Write(const control::SavedRepetition& saved, StateWriter& writer) {
  writer.WriteUnsigned(saved.version);
  writer.WriteBool(saved.finished);
  writer.WriteInt(static_cast<int64_t>(saved.division.mode));
  writer.WriteInt(saved.division.count);
  WriteInts(saved.division.shards, writer);
  writer.WriteInt(saved.num_consumers);
  WriteInts(saved.leads, writer);
  writer.WriteBool(saved.positions.has_value());
  if (saved.positions.has_value()) {
    writer.WriteInt(saved.positions->partitions);
    writer.WriteInt(saved.positions->consumers);
    writer.WriteInt(saved.positions->first);
  }
  writer.WriteUnsigned(saved.partitions.size());
  for (const control::SavedRepetition::Partition& partition : saved.partitions) {
    writer.WriteInt(partition.committed_below);
    writer.WriteUnsigned(partition.given.size());
    for (const control::SplitRun& run : partition.given) Write(run, writer);
    writer.WriteUnsigned(partition.bookmarks.size());
    for (const control::SavedRepetition::Position& bookmark : partition.bookmarks) {
      writer.WriteInt(bookmark.index);
      writer.WriteString(bookmark.bytes);
    }
  }
  writer.WriteUnsigned(saved.readers.size());
  for (const control::SavedRepetition::Reader& reader : saved.readers) {
    writer.WriteUnsigned(reader.client.value());
    writer.WriteBool(reader.gone);
    writer.WriteInt(reader.committed_count);
    writer.WriteInt(reader.consumer);
    IndicesByPartition committed;
    for (const control::PartitionIndices& of : reader.committed)
      committed[of.partition] = of.indices;
    Write(committed, writer);
  }
}

absl::StatusOr<control::SavedRepetition> ReadSaved(StateReader& reader, int64_t repetition) {
  control::SavedRepetition saved{.repetition = repetition};
  ASSIGN_OR_RETURN(saved.version, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(saved.finished, reader.ReadBool());
  ASSIGN_OR_RETURN(
      const int64_t mode,
      reader.ReadIntIn(0, static_cast<int64_t>(ShardingPolicy::kHint), "a sharding policy"));
  saved.division.mode = static_cast<ShardingPolicy>(mode);
  ASSIGN_OR_RETURN(saved.division.count, reader.ReadIntIn(0, kMost, "a number of shards"));
  ASSIGN_OR_RETURN(saved.division.shards, ReadInts(reader, "a shard"));
  ASSIGN_OR_RETURN(saved.num_consumers, reader.ReadIntIn(0, kMost, "a number of consumers"));
  ASSIGN_OR_RETURN(saved.leads, ReadInts(reader, "a number of elements"));
  ASSIGN_OR_RETURN(const bool has_positions, reader.ReadBool());
  if (has_positions) {
    saved.positions.emplace();
    ASSIGN_OR_RETURN(saved.positions->partitions,
                     reader.ReadIntIn(1, kMaxPositions, "a number of partitions"));
    ASSIGN_OR_RETURN(saved.positions->consumers,
                     reader.ReadIntIn(1, kMaxPositions, "a number of consumers"));
    ASSIGN_OR_RETURN(saved.positions->first, reader.ReadIntIn(0, kMost, "a position"));
  }
  ASSIGN_OR_RETURN(const uint64_t partitions, reader.ReadUnsigned());
  for (uint64_t p = 0; p < partitions; ++p) {
    control::SavedRepetition::Partition& partition = saved.partitions.emplace_back();
    ASSIGN_OR_RETURN(partition.committed_below, reader.ReadIntIn(0, kMost, "an index"));
    ASSIGN_OR_RETURN(const uint64_t runs, reader.ReadUnsigned());
    for (uint64_t r = 0; r < runs; ++r) {
      ASSIGN_OR_RETURN(control::SplitRun run, ReadRun(reader));
      partition.given.push_back(std::move(run));
    }
    ASSIGN_OR_RETURN(const uint64_t bookmarks, reader.ReadUnsigned());
    for (uint64_t b = 0; b < bookmarks; ++b) {
      control::SavedRepetition::Position& bookmark = partition.bookmarks.emplace_back();
      ASSIGN_OR_RETURN(bookmark.index, reader.ReadIntIn(0, kMost, "a bookmark's index"));
      ASSIGN_OR_RETURN(const std::string_view bytes, reader.ReadString());
      bookmark.bytes = bytes;
    }
  }
  ASSIGN_OR_RETURN(const uint64_t readers, reader.ReadUnsigned());
  for (uint64_t r = 0; r < readers; ++r) {
    control::SavedRepetition::Reader& of = saved.readers.emplace_back();
    ASSIGN_OR_RETURN(const uint64_t client, reader.ReadUnsigned());
    of.client = ClientId(client);
    ASSIGN_OR_RETURN(of.gone, reader.ReadBool());
    ASSIGN_OR_RETURN(of.committed_count, reader.ReadIntIn(0, kMost, "a count"));
    ASSIGN_OR_RETURN(of.consumer, reader.ReadIntIn(-1, kMaxPositions, "a consumer's number"));
    ASSIGN_OR_RETURN(const IndicesByPartition committed, ReadIndicesByPartition(reader));
    of.committed = ToMessage(committed);
  }
  return saved;
}

}  // namespace

std::vector<control::PartitionIndices> ToMessage(const IndicesByPartition& delivered) {
  std::vector<control::PartitionIndices> message;
  for (const auto& [partition, indices] : delivered) message.push_back({partition, indices});
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
    Write(repetition.delivered, writer);
  }
}

absl::StatusOr<ReaderState> ReadReaderState(StateReader& reader) {
  ReaderState state;
  ASSIGN_OR_RETURN(const uint64_t version, reader.ReadUnsigned());
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the state of Distribute has version ", version,
                                                   "; this program reads version ", kVersion));
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
    ASSIGN_OR_RETURN(repetition.delivered, ReadIndicesByPartition(reader));
  }
  if (!state.client || state.repetitions.empty()) {
    return absl::DataLossError("the state of Distribute names no client or no repetition");
  }
  return state;
}

void Write(const JobState& state, StateWriter& writer) {
  Write(state.reader, writer);
  if (!state.reader.job) return;
  writer.WriteUnsigned(state.job_mark);
  writer.WriteUnsigned(state.heard.life.journal);
  writer.WriteUnsigned(state.heard.life.id);
  writer.WriteUnsigned(state.heard.life.term.value());
  writer.WriteUnsigned(state.heard.sequence);
  writer.WriteUnsigned(state.seed);
  writer.WriteUnsigned(state.dataset);
  writer.WriteUnsigned(static_cast<uint64_t>(state.terms.mode));
  writer.WriteUnsigned(static_cast<uint64_t>(state.terms.ack_mode));
  writer.WriteBool(state.terms.deterministic);
  if (state.terms.deterministic) writer.WriteInt(state.terms.partitions);
  writer.WriteBool(state.terms.visitation == Visitation::kAtLeastOnce);
  writer.WriteInt(state.terms.group_size);
  for (const control::SavedRepetition& saved : state.saved) Write(saved, writer);
}

absl::StatusOr<JobState> ReadJobState(StateReader& reader) {
  JobState state;
  ASSIGN_OR_RETURN(state.reader, ReadReaderState(reader));
  if (!state.reader.job) return state;
  ASSIGN_OR_RETURN(state.job_mark, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(state.heard.life.journal, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(state.heard.life.id, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(const uint64_t term, reader.ReadUnsigned());
  state.heard.life.term = Term(term);
  ASSIGN_OR_RETURN(state.heard.sequence, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(state.seed, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(state.dataset, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(const uint64_t mode, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(const uint64_t keep, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(state.terms.deterministic, reader.ReadBool());
  if (state.terms.deterministic) {
    ASSIGN_OR_RETURN(state.terms.partitions, reader.ReadIntIn(0, kMost, "a number of partitions"));
  }
  ASSIGN_OR_RETURN(const bool at_least_once, reader.ReadBool());
  if (at_least_once) state.terms.visitation = Visitation::kAtLeastOnce;
  ASSIGN_OR_RETURN(state.terms.group_size, reader.ReadIntIn(1, kMost, "a group's size"));
  if (mode > static_cast<uint64_t>(ShardingPolicy::kHint) ||
      keep > static_cast<uint64_t>(AckMode::kOnCommit)) {
    return absl::DataLossError("the state of Distribute has an invalid processing_mode or keep");
  }
  state.terms.mode = static_cast<ShardingPolicy>(mode);
  state.terms.ack_mode = static_cast<AckMode>(keep);
  for (const ReaderState::Repetition& repetition : state.reader.repetitions) {
    ASSIGN_OR_RETURN(control::SavedRepetition saved, ReadSaved(reader, repetition.number));
    state.saved.push_back(std::move(saved));
  }
  return state;
}

uint64_t MarkOfJob(std::string_view token) {
  uint64_t mark = 0xcbf29ce484222325;
  for (const char byte : token) mark = (mark ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return mark;
}

control::RankState ToRankState(const JobState& state) {
  control::RankState rank{.client = state.reader.client,
                          .job = state.reader.job,
                          .job_mark = state.job_mark,
                          .job_name = state.reader.job_name,
                          .at_least_once = state.terms.visitation == Visitation::kAtLeastOnce};
  for (size_t i = 0; i < state.saved.size(); ++i) {
    rank.repetitions.push_back({state.saved[i], ToMessage(state.reader.repetitions[i].delivered)});
  }
  return rank;
}

absl::StatusOr<std::optional<MergedStates>> MergeStates(absl::Span<const JobState> ranks,
                                                        const control::JobTerms& terms,
                                                        uint64_t dataset, uint64_t name) {
  std::vector<control::RankState> begun;
  MergedStates merged{.repetition = std::numeric_limits<int64_t>::max()};
  bool edited = false;  // the dataset that the workers run
  for (const JobState& state : ranks) {
    if (!state.reader.job) continue;  // the rank had not begun to read
    if (state.terms.mode != terms.mode || state.terms.ack_mode != terms.ack_mode ||
        state.terms.deterministic != terms.deterministic ||
        state.terms.partitions != terms.partitions || state.terms.group_size != terms.group_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("the states are of job '", state.reader.job_name,
                       "', which was read with a different processing_mode, keep, order, number "
                       "of partitions or consumer_group size than in this Distribute"));
    }
    merged.job_name = state.reader.job_name;
    merged.seed = state.seed;
    edited |= state.dataset != dataset;
    merged.repetition = std::min(merged.repetition, state.reader.repetitions.back().number);
    begun.push_back(ToRankState(state));
  }
  if (begun.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(merged.restoration, control::MergeRankStates(begun, name));
  // Bookmarks are valid only for the dataset from which they were saved. An edited dataset is read
  // from its first splits.
  if (edited) RETURN_IF_ERROR(control::ForgetBookmarks(merged.restoration));
  return merged;
}

}  // namespace penstock::client
