// SPDX-License-Identifier: Apache-2.0
// Converts a whole state to and from its wire form.
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "control/journal/changes_proto.h"
#include "control/journal/records_proto.h"
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

WIRE_PAIR(IterationState, wire::Iteration) {
  WIRE_FIELDS(id, job, repetition, leads, handed_out, passes_over, failure);
  WIRE_FIELD_IF(value.division.count > 0, division);
  WIRE_FIELD_AS(record.commit_policy, commit_policy);
  WIRE_FIELD_AS(record.at_least_once, at_least_once);
  WIRE_FIELD_AS(record.closed, closed);
  WIRE_FIELD_AS(record.finished, finished);
  WIRE_FIELD_AS(record.forgotten, forgotten);
  WIRE_FIELD_AS(record.order_consumers, order_consumers);
  WIRE_FIELD_AS(record.partitions, partitions);
  if constexpr (Coder::kEncodes) {
    for (size_t p = 0; p < value.record.partitions.size(); ++p) {
      coder.Put(value.splits[p], message.mutable_partitions(static_cast<int>(p)));
    }
    for (const protocol::ReaderRecord& reader : value.record.readers) {
      coder.Put(reader, message.add_sessions());
    }
    if (value.record.coordinated()) coder.Put(value.record.rounds, message.mutable_rounds());
  } else {
    coder.Get("partitions", message.partitions(), value.splits);
    for (const wire::Iteration::Session& session : message.sessions()) {
      protocol::ReaderRecord reader;
      coder.Get("sessions", session, reader);
      value.record.readers.Add(std::move(reader));
    }
    coder.Require(
        value.division.count <= 0 || value.record.partitions.size() <= value.division.shards.size(),
        ToString(value.id), " has more partitions than shards");
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

absl::Status ReadSnapshot(const wire::Snapshot& from, State& to) {
  ASSIGN_OR_RETURN(to.lives, Decode<std::vector<BegunLife>>(from.lives()));
  if (to.lives.empty() && from.term() > 0)
    to.lives.push_back({.life = {.term = Term(from.term())}});
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
  for (const wire::Iteration& wire : from.iterations()) {
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

constexpr size_t kPieceBytes = size_t{16} << 20;

// Cuts a snapshot into pieces.
class Pieces {
 public:
  explicit Pieces(size_t most_bytes) : most_bytes_(most_bytes) {}

  // Returns the piece to which to write next.
  wire::Snapshot& now() { return now_; }

  // Counts the bytes of `written`, which was just written to now(). Begins the next piece if now()
  // has become large enough. `words` name the object in an error.
  template <typename... Words>
  absl::Status Wrote(const google::protobuf::Message& written, const Words&... words) {
    const size_t bytes = written.ByteSizeLong();
    if (bytes + kPieceBytes > most_bytes_) {
      return absl::ResourceExhaustedError(absl::StrCat(words..., " takes ", bytes,
                                                       " bytes of a snapshot; the limit is ",
                                                       most_bytes_ - kPieceBytes));
    }
    gathered_ += bytes;
    if (gathered_ >= kPieceBytes) Close();
    return absl::OkStatus();
  }

  std::vector<std::string> Take() && {
    Close();
    return std::move(pieces_);
  }

 private:
  void Close() {
    pieces_.push_back(now_.SerializeAsString());
    now_.Clear();
    gathered_ = 0;
  }

  const size_t most_bytes_;
  wire::Snapshot now_;
  size_t gathered_ = 0;
  std::vector<std::string> pieces_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> EncodeState(const State& state, size_t most_piece_bytes) {
  Pieces pieces(most_piece_bytes);
  Encoder coder;
  coder.Put(state.lives, pieces.now().mutable_lives());
  pieces.now().set_next_dataset(state.next_dataset);
  pieces.now().set_next_job(state.next_job);
  pieces.now().set_next_iteration(state.next_iteration);
  for (const auto& [id, dataset] : state.datasets) {
    wire::Dataset* wire = pieces.now().add_datasets();
    coder.Put(dataset, wire);
    RETURN_IF_ERROR(pieces.Wrote(*wire, "dataset ", id));
  }
  for (const auto& [id, job] : state.jobs) {
    wire::Job* wire = pieces.now().add_jobs();
    WriteJob(job, state, wire);
    RETURN_IF_ERROR(pieces.Wrote(*wire, ToString(id)));
  }
  for (const auto& [name, job] : state.job_names) {
    wire::Snapshot::JobName* wire = pieces.now().add_names();
    wire->set_name(name);
    wire->set_job(job.value());
    RETURN_IF_ERROR(pieces.Wrote(*wire, name));
  }
  for (const auto& [id, iteration] : state.iterations) {
    wire::Iteration* wire = pieces.now().add_iterations();
    coder.Put(iteration, wire);
    RETURN_IF_ERROR(pieces.Wrote(*wire, ToString(id)));
  }
  for (const auto& [key, past] : state.past) {
    wire::PastIteration* wire = pieces.now().add_past();
    wire->set_job(key.first.value());
    wire->set_repetition(key.second);
    coder.Put(past, wire);
    RETURN_IF_ERROR(pieces.Wrote(*wire, ToString(past.id)));
  }
  for (const auto& [id, worker] : state.workers) {
    wire::Worker* wire = pieces.now().add_workers();
    coder.Put(worker, wire);
    RETURN_IF_ERROR(pieces.Wrote(*wire, ToString(id)));
  }
  for (const FormerWorker& former : state.former_workers) {
    wire::FormerWorker* wire = pieces.now().add_former_workers();
    coder.Put(former, wire);
    RETURN_IF_ERROR(pieces.Wrote(*wire, ToString(former.id)));
  }
  for (const AnswerRecord& answer : state.answers) {
    wire::Answered* wire = pieces.now().add_answers();
    coder.Put(answer, wire);
    RETURN_IF_ERROR(pieces.Wrote(*wire, "an answer"));
  }
  return std::move(pieces).Take();
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
  State state;
  if (absl::Status read = ReadSnapshot(wire, state); !read.ok()) {
    return absl::DataLossError(absl::StrCat("the snapshot is invalid: ", read.message()));
  }
  state.placed = state.ComputePlaced();
  for (auto& [id, iteration] : state.iterations)
    iteration.record.committed_by_any = protocol::ComputeCommitted(iteration.record);
  return state;
}

}  // namespace penstock::control
