// SPDX-License-Identifier: Apache-2.0
// Converts a whole state to and from its wire form.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "control/journal/changes_proto.h"
#include "control/journal/records_proto.h"
#include "control/journal/state_pieces.h"
#include "control/state/format.h"
#include "google/protobuf/arena.h"
#include "include/status_macros.h"

namespace penstock::control {

template <>
inline constexpr protocol::CommitPolicy kLast<protocol::CommitPolicy> =
    protocol::CommitPolicy::kNever;

// --- Maps, as the lists of their entries ---

static void Fields(Encoder& coder, const GivenSplits::value_type& value, wire::SplitRun& message) {
  Fields(coder, value.second, message);
}
static void Fields(Decoder& coder, GivenSplits& value,
                   const google::protobuf::RepeatedPtrField<wire::SplitRun>& message) {
  for (const wire::SplitRun& given : message) {
    SplitRun run;
    Fields(coder, run, given);
    const ProviderKey key{run.provider, run.repetition};
    value[key] = std::move(run);
  }
}

using HandedOut = std::map<ProviderKey, int64_t>;
static void Fields(Encoder&, const HandedOut::value_type& value,
                   wire::Iteration::HandedOut& message) {
  message.set_provider(value.first.provider);
  message.set_repetition(value.first.repetition);
  message.set_splits(value.second);
}
static void Fields(Decoder&, HandedOut& value,
                   const google::protobuf::RepeatedPtrField<wire::Iteration::HandedOut>& message) {
  for (const wire::Iteration::HandedOut& handed : message) {
    value[{handed.provider(), handed.repetition()}] = handed.splits();
  }
}

// --- Iterations ---

WIRE_STRUCT(protocol::PartitionRecord, wire::Iteration::Partition, placement, worker, bookmarks,
            end, audience);
WIRE_STRUCT(PartitionSplits, wire::Iteration::Partition, given, marks, retired);

WIRE_STRUCT(protocol::CommittedMark, wire::CommittedMark, count, hash);

WIRE_PAIR(protocol::ReaderRecord, wire::Reader) {
  WIRE_FIELDS(client, incarnation);
  WIRE_FIELD_IF(value.consumer >= 0, consumer);
}
WIRE_PAIR(protocol::ReaderRecord, wire::Iteration::Session) {
  WIRE_PART(reader);
  WIRE_FIELDS(start, fresh, status, end_notified, committed, final);
  WIRE_FIELD_IF(value.mark.count > 0, mark);
}

WIRE_PAIR(protocol::RoundsRecord, wire::Iteration::Rounds) {
  WIRE_FIELDS(consumers, remainder_policy, ends);
  WIRE_FIELD_AS(schedule.first, first);
  WIRE_FIELD_AS(schedule.rotation, rotation);
  WIRE_FIELD_AS(schedule.next, next);
  WIRE_FIELD_AS(schedule.events, events);
  WIRE_FIELD_AS(schedule.joined, joined);
  if constexpr (!Coder::kEncodes) {
    const bool negative =
        value.consumers < 0 || absl::c_any_of(value.ends, [](Index end) { return end < 0; });
    coder.Require(
        !negative && (value.consumers > 0 || value.ends.empty()) && value.schedule.IsSound(),
        "the rounds of a coordinated read are invalid");
  }
}

static void CheckRounds(Decoder& coder, const IterationState& iteration) {
  const protocol::IterationRecord& record = iteration.record;
  const auto there = [&](PartitionId partition) { return record.Has(partition); };
  const auto entry_there = [&](const protocol::PartitionRow& entry) {
    return there(entry.partition);
  };
  coder.Require(
      (record.rounds.ends.empty() || record.rounds.ends.size() == record.partitions.size()) &&
          absl::c_all_of(record.rounds.schedule.joined, there) &&
          absl::c_all_of(record.rounds.schedule.rotation, entry_there),
      ToString(iteration.id), " has rounds of partitions that it does not have");
}

static void CheckPartitions(Decoder& coder, const IterationState& iteration) {
  const auto readers = static_cast<Index>(iteration.record.readers.size());
  for (const protocol::PartitionRecord& partition : iteration.record.partitions) {
    coder.Require(!partition.audience || partition.audience->end() <= readers,
                  ToString(iteration.id), " has a partition for readers that it does not have");
    coder.Require(!partition.end || (*partition.end >= 0 && *partition.end < kMostIndices),
                  ToString(iteration.id), " has a partition with an invalid number of elements");
  }
  const auto there = [&](const protocol::ReceivedSets::Entry& entry) {
    return iteration.record.Has(entry.partition);
  };
  for (const protocol::ReaderRecord& reader : iteration.record.readers) {
    coder.Require(absl::c_all_of(reader.committed, there) && absl::c_all_of(reader.final, there),
                  ToString(iteration.id), " has a reader of partitions that it does not have");
  }
}

// Without its partitions and readers, which are in pieces of their own (EncodePiece), if it is
// written.
WIRE_PAIR(IterationState, wire::Iteration) {
  WIRE_FIELDS(id, job, repetition, leads, handed_out, passes_over, failure);
  WIRE_FIELD_IF(value.division.count > 0, division);
  WIRE_FIELD_AS(record.commit_policy, commit_policy);
  WIRE_FIELD_AS(record.at_least_once, at_least_once);
  WIRE_FIELD_AS(record.closed, closed);
  WIRE_FIELD_AS(record.finished, finished);
  WIRE_FIELD_AS(record.forgotten, forgotten);
  WIRE_FIELD_AS(record.order_consumers, order_consumers);
  if constexpr (Coder::kEncodes) {
    if (value.record.coordinated()) coder.Put(value.record.rounds, message.mutable_rounds());
  } else {
    coder.Get("partitions", message.partitions(), value.record.partitions);
    coder.Get("partitions", message.partitions(), value.splits);
    for (const wire::Iteration::Session& session : message.sessions()) {
      protocol::ReaderRecord reader;
      coder.Get("sessions", session, reader);
      value.record.readers.Add(std::move(reader));
    }
    coder.Require(
        value.division.count <= 0 || value.record.partitions.size() <= value.division.shards.size(),
        ToString(value.id), " has more partitions than shards");
    CheckPartitions(coder, value);
    coder.Require(value.record.order_consumers >= 0, "the number of consumers is negative");
    if (message.has_rounds()) {
      coder.Get("rounds", message.rounds(), value.record.rounds);
      CheckRounds(coder, value);
    }
    if (value.record.finished && coder.status().ok()) {
      protocol::ForgetHistories(value.record);  // older releases kept them
    }
  }
}

WIRE_PAIR(PastIteration::Reader, wire::Reader) {
  WIRE_FIELDS(client, incarnation);
  WIRE_FIELD_IF(value.consumer >= 0, consumer);
}
WIRE_PAIR(PastIteration::Reader, wire::PastIteration::Past) {
  WIRE_PART(reader);
  WIRE_FIELDS(status);
  WIRE_FIELD_IF(value.mark.count > 0, mark);
}
WIRE_PAIR(PastIteration::More, wire::PastIteration) {
  WIRE_FIELD_IF(value.division.count > 0, division);
  WIRE_FIELD_IF(value.rounds.consumers > 0, rounds);
  WIRE_FIELDS(readers);
}
WIRE_PAIR(PastIteration, wire::PastIteration) {
  WIRE_FIELDS(id, ends);
  if constexpr (Coder::kEncodes) {
    if (value.more != nullptr) coder.Put(*value.more, &message);
  } else if (message.has_division() || message.has_rounds() || !message.readers().empty()) {
    auto more = std::make_shared<PastIteration::More>();
    Fields(coder, *more, message);
    value.more = std::move(more);
  }
}

namespace {

// Returns the iterations of the snapshot, each merged from its pieces.
std::map<uint64_t, wire::Iteration> MergeIterations(wire::Snapshot& from) {
  std::map<uint64_t, wire::Iteration> merged;
  for (wire::Iteration& piece : *from.mutable_iterations()) {
    const auto [whole, is_first] = merged.try_emplace(piece.id());
    if (is_first) {
      whole->second.Swap(&piece);
    } else {
      whole->second.MergeFrom(piece);
    }
  }
  return merged;
}

absl::Status ReadSnapshot(wire::Snapshot& from, State& to) {
  ASSIGN_OR_RETURN(to.lives, Decode<std::vector<BegunLife>>(from.lives()));
  if (to.lives.empty() && from.term() > 0)
    to.lives.push_back({.life = {.term = Term(from.term())}});
  if (from.format() > 0) to.format = from.format();
  to.next_dataset = from.next_dataset();
  to.next_job = from.next_job();
  to.next_iteration = from.next_iteration();
  for (const wire::Dataset& wire : from.datasets()) {
    ASSIGN_OR_RETURN(auto dataset, Decode<std::shared_ptr<const DatasetRecord>>(wire));
    to.datasets[wire.id()] = std::move(dataset);
  }
  for (const wire::Job& wire : from.jobs()) {
    ASSIGN_OR_RETURN(JobRecord job, ReadJob(wire, to));
    to.jobs.insert_or_assign(job.id, std::move(job));
  }
  for (const wire::Snapshot::JobName& name : from.names()) {
    to.job_names[name.name()] = JobId(name.job());
  }
  for (const auto& [id, wire] : MergeIterations(from)) {
    ASSIGN_OR_RETURN(IterationState iteration, Decode<IterationState>(wire));
    if (to.FindJob(iteration.job) == nullptr) {
      return absl::DataLossError(absl::StrCat(ToString(iteration.id), " belongs to no job"));
    }
    to.repetitions[{iteration.job, iteration.repetition}] = iteration.id;
    to.iterations.insert_or_assign(iteration.id, std::move(iteration));
  }
  for (const wire::PastIteration& wire : from.past()) {
    if (to.FindJob(JobId(wire.job())) == nullptr)
      return absl::DataLossError(
          absl::StrCat("a past iteration belongs to unknown ", ToString(JobId(wire.job()))));
    const std::pair key(JobId(wire.job()), wire.repetition());
    ASSIGN_OR_RETURN(to.past[key], Decode<PastIteration>(wire));
  }
  for (const wire::Worker& wire : from.workers()) {
    ASSIGN_OR_RETURN(to.workers[WorkerId(wire.id())], Decode<WorkerRecord>(wire));
  }
  ASSIGN_OR_RETURN(to.former_workers, Decode<std::vector<FormerWorker>>(from.former_workers()));
  ASSIGN_OR_RETURN(std::vector<AnswerRecord> answers,
                   Decode<std::vector<AnswerRecord>>(from.answers()));
  to.answers = Answers(std::move(answers));
  return absl::OkStatus();
}

void PutCommon(Encoder& coder, const State& state, wire::Snapshot& to) {
  coder.Put(state.lives, to.mutable_lives());
  if (state.format > kFirstFormat) to.set_format(state.format);
  to.set_next_dataset(state.next_dataset);
  to.set_next_job(state.next_job);
  to.set_next_iteration(state.next_iteration);
  coder.Put(state.former_workers, to.mutable_former_workers());
}

void PutJob(const JobRecord& job, const State& state, wire::Snapshot& to) {
  WriteJob(job, state, to.add_jobs());
  const auto name = state.job_names.find(job.name);
  if (name == state.job_names.end() || name->second != job.id) return;
  wire::Snapshot::JobName* wire = to.add_names();
  wire->set_name(job.name);
  wire->set_job(job.id.value());
}

void PutPartitions(Encoder& coder, const IterationState& iteration, size_t begin, size_t end,
                   wire::Iteration* to) {
  to->set_id(iteration.id.value());
  for (size_t at = begin; at < end; ++at) {
    wire::Iteration::Partition* wire = to->add_partitions();
    coder.Put(iteration.record.partitions[at], wire);
    coder.Put(iteration.splits[at], wire);
  }
}

// Adds the content of the piece `key` to an empty wire::Snapshot. Returns false if the state has no
// such piece.
bool PutPiece(const State& state, const PieceKey& key, Encoder& coder, wire::Snapshot& to) {
  using Kind = PieceKey::Kind;
  const auto part = static_cast<size_t>(key.part);
  const IterationState* iteration = state.FindIteration(IterationId(key.id));
  switch (key.kind) {
    case Kind::kCommon:
      PutCommon(coder, state, to);
      return true;
    case Kind::kAnswers:
      for (const AnswerRecord& answer : state.answers) coder.Put(answer, to.add_answers());
      return true;
    case Kind::kDataset: {
      const auto dataset = state.FindDataset(key.name);
      if (dataset != nullptr) coder.Put(dataset, to.add_datasets());
      return dataset != nullptr;
    }
    case Kind::kJob: {
      const JobRecord* job = state.FindJob(JobId(key.id));
      if (job != nullptr) PutJob(*job, state, to);
      return job != nullptr;
    }
    case Kind::kIteration:
      if (iteration != nullptr) coder.Put(*iteration, to.add_iterations());
      return iteration != nullptr;
    case Kind::kPartitions: {
      const size_t begin = part * kPartitionsPerPiece;
      const size_t there = iteration == nullptr ? 0 : iteration->record.partitions.size();
      if (begin >= there) return false;
      PutPartitions(coder, *iteration, begin, std::min(begin + kPartitionsPerPiece, there),
                    to.add_iterations());
      return true;
    }
    case Kind::kReader: {
      if (iteration == nullptr || part >= iteration->record.readers.size()) return false;
      wire::Iteration* wire = to.add_iterations();
      wire->set_id(key.id);
      coder.Put(iteration->record.readers[part], wire->add_sessions());
      return true;
    }
    case Kind::kPast: {
      const auto past = state.past.find({JobId(key.id), key.part});
      if (past == state.past.end()) return false;
      wire::PastIteration* wire = to.add_past();
      wire->set_job(key.id);
      wire->set_repetition(key.part);
      coder.Put(past->second, wire);
      return true;
    }
    case Kind::kWorker: {
      const WorkerRecord* worker = state.FindWorker(WorkerId(key.id));
      if (worker != nullptr) coder.Put(*worker, to.add_workers());
      return worker != nullptr;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<std::optional<std::string>> EncodePiece(const State& state, const PieceKey& key,
                                                       uint32_t format, size_t most_bytes) {
  google::protobuf::Arena arena;  // a reader of many partitions has many small messages
  wire::Snapshot& wire = *google::protobuf::Arena::CreateMessage<wire::Snapshot>(&arena);
  Encoder coder(format);
  if (!PutPiece(state, key, coder, wire)) return std::nullopt;
  const size_t bytes = wire.ByteSizeLong();
  if (bytes <= most_bytes) return wire.SerializeAsString();
  return absl::ResourceExhaustedError(absl::StrCat(
      ToBytes(key), " takes ", bytes, " bytes of a snapshot; the limit is ", most_bytes));
}

absl::StatusOr<SnapshotChanges> EncodeSnapshot(const State& state) {
  SnapshotChanges changes{.whole = true, .joined = state.format < kPiecesFormat};
  absl::Status encoded;
  ForEachPiece(state, [&](const PieceKey& key) {
    absl::StatusOr<std::optional<std::string>> piece = EncodePiece(state, key, state.format);
    encoded.Update(piece.status());
    if (piece.ok()) changes.pieces[ToBytes(key)] = *std::move(piece);
  });
  RETURN_IF_ERROR(encoded);
  return changes;
}

absl::StatusOr<std::vector<std::string>> EncodeState(const State& state) {
  ASSIGN_OR_RETURN(SnapshotChanges changes, EncodeSnapshot(state));
  std::vector<std::string> pieces;
  for (auto& [key, piece] : changes.pieces) pieces.push_back(*std::move(piece));
  return pieces;
}

absl::StatusOr<State> DecodeState(absl::Span<const std::string> pieces) {
  wire::Snapshot wire;
  for (const std::string& piece : pieces) {
    if (!wire.MergeFromString(piece)) {
      return absl::DataLossError("the snapshot's bytes cannot be parsed as a state");
    }
    RETURN_IF_ERROR(
        Annotate(CheckKnown(piece, *wire.GetDescriptor()), "the field is in the snapshot"));
  }
  RETURN_IF_ERROR(CheckFormat(wire.format()));
  State state;
  if (absl::Status read = ReadSnapshot(wire, state); absl::IsFailedPrecondition(read)) {
    return Annotate(read, "the field is in the snapshot");
  } else if (!read.ok()) {
    return absl::DataLossError(absl::StrCat("the snapshot is invalid: ", read.message()));
  }
  state.placed = state.ComputePlaced();
  state.uses = state.ComputeUses();
  for (auto& [id, iteration] : state.iterations) protocol::ComputeKept(iteration.record);
  return state;
}

}  // namespace penstock::control
