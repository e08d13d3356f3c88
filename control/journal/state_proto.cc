// SPDX-License-Identifier: Apache-2.0
// A whole state to and from its wire form.
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "control/journal/changes_proto.h"
#include "control/journal/records_proto.h"

namespace penstock::control {
namespace {

void WritePartition(const protocol::PartitionRecord& from, const PartitionSplits& splits,
                    wire::Iteration::Partition* to) {
  to->set_placement(from.placement.value());
  to->set_worker(from.worker.value());
  for (const protocol::Bookmark& bookmark : from.bookmarks) {
    WriteBookmark(bookmark, to->add_bookmarks());
  }
  if (from.end.has_value()) to->set_end(*from.end);
  for (const auto& [key, run] : splits.given) ToWire(run, to->add_given());
  for (const MarkedBookmark& marked : splits.marks) WriteMarked(marked, to->add_marks());
  PassesToWire(splits.retired, to->mutable_retired());
}

absl::Status ReadPartition(const wire::Iteration::Partition& from, protocol::PartitionRecord& to,
                           PartitionSplits& splits) {
  to.placement = Placement(from.placement());
  to.worker = WorkerId(from.worker());
  for (const wire::SavedPosition& bookmark : from.bookmarks()) {
    to.bookmarks.push_back(ReadBookmark(bookmark));
  }
  if (from.has_end()) to.end = from.end();
  for (const wire::SplitRun& wire : from.given()) {
    ASSIGN_OR_RETURN(SplitRun run, FromWire(wire));
    const ProviderKey key{run.provider, run.repetition};
    splits.given[key] = std::move(run);
  }
  for (const wire::MarkedBookmark& marked : from.marks()) {
    splits.marks.push_back(ReadMarked(marked));
  }
  ASSIGN_OR_RETURN(splits.retired, PassesFromWire(from.retired()));
  return absl::OkStatus();
}

void WriteMark(const protocol::CommittedMark& from, wire::CommittedMark* to) {
  to->set_count(from.count);
  to->set_hash(from.hash);
}

protocol::CommittedMark ReadMark(const wire::CommittedMark& from) {
  return {.count = from.count(), .hash = from.hash()};
}

void WriteSession(const protocol::ReaderRecord& from, wire::Iteration::Session* to) {
  ToWire(Reader{from.client, from.incarnation, from.consumer}, to->mutable_reader());
  to->set_start(from.start);
  to->set_fresh(from.fresh);
  to->set_status(static_cast<uint32_t>(from.status));
  to->set_end_notified(from.end_notified);
  WriteReceivedSets(from.committed, to->mutable_committed());
  WriteReceivedSets(from.final, to->mutable_final());
  if (from.mark.count > 0) WriteMark(from.mark, to->mutable_mark());
}

absl::StatusOr<protocol::ReaderRecord> ReadSession(const wire::Iteration::Session& from) {
  const Reader reader = FromWire(from.reader());
  protocol::ReaderRecord to{.client = reader.client,
                            .incarnation = reader.incarnation,
                            .end_notified = from.end_notified()};
  to.consumer = reader.consumer;
  to.start = from.start();
  to.fresh = from.fresh();
  ASSIGN_OR_RETURN(to.status, ReadReaderStatus(from.status()));
  ASSIGN_OR_RETURN(to.committed, ReadReceivedSets(from.committed()));
  ASSIGN_OR_RETURN(to.final, ReadReceivedSets(from.final()));
  to.mark = ReadMark(from.mark());
  return to;
}

void WriteRounds(const protocol::RoundsRecord& from, wire::Iteration::Rounds* to) {
  to->set_consumers(from.consumers);
  to->set_rests(static_cast<uint32_t>(from.rests));
  to->set_first(from.schedule.first);
  for (const protocol::PartitionRow& entry : from.schedule.rotation) {
    to->add_rotation()->set_partition(entry.partition.value());
    to->mutable_rotation()->rbegin()->set_row(entry.row);
  }
  to->set_next(from.schedule.next);
  for (const protocol::RoundEvent& event : from.schedule.events) {
    WriteRoundEvent(event, to->add_events());
  }
  for (PartitionId partition : from.schedule.joined) to->add_joined(partition.value());
  for (Index end : from.ends) to->add_ends(end);
}

absl::StatusOr<protocol::RoundsRecord> ReadRounds(const wire::Iteration::Rounds& from) {
  protocol::RoundsRecord to{.consumers = from.consumers(), .schedule = {}, .ends = {}};
  if (from.rests() > static_cast<uint32_t>(Rests::kError)) {
    return absl::DataLossError(absl::StrCat("unknown value ", from.rests(), " of rests"));
  }
  to.rests = static_cast<Rests>(from.rests());
  to.schedule.first = from.first();
  for (const wire::PartitionRow& entry : from.rotation()) {
    to.schedule.rotation.push_back({PartitionId(entry.partition()), entry.row()});
  }
  to.schedule.next = from.next();
  for (const wire::IterationAltered::RoundEvent& wire : from.events()) {
    ASSIGN_OR_RETURN(protocol::RoundEvent event, ReadRoundEvent(wire));
    to.schedule.events.push_back(event);
  }
  for (uint64_t partition : from.joined()) to.schedule.joined.push_back(PartitionId(partition));
  for (int64_t end : from.ends()) to.ends.push_back(end);
  const bool negative =
      to.consumers < 0 || absl::c_any_of(to.ends, [](Index end) { return end < 0; });
  if (negative || (to.consumers == 0 && !to.ends.empty()) || !to.schedule.IsSound())
    return absl::DataLossError("the rounds of a coordinated read are invalid");
  return to;
}

void WriteIteration(const IterationState& from, wire::Iteration* to) {
  to->set_id(from.id.value());
  to->set_job(from.job.value());
  to->set_repetition(from.repetition);
  if (from.division.count > 0) ToWire(from.division, to->mutable_division());
  for (const int64_t lead : from.leads) to->add_leads(lead);
  to->set_keep(static_cast<uint32_t>(from.record.commit_policy));
  to->set_at_least_once(from.record.at_least_once);
  to->set_closed(from.record.closed);
  to->set_finished(from.record.finished);
  to->set_forgotten(from.record.forgotten);
  for (size_t p = 0; p < from.record.partitions.size(); ++p) {
    WritePartition(from.record.partitions[p], from.splits[p], to->add_partitions());
  }
  for (const protocol::ReaderRecord& reader : from.record.readers) {
    WriteSession(reader, to->add_sessions());
  }
  for (const auto& [key, splits] : from.handed_out) {
    wire::Iteration::HandedOut* wire = to->add_handed_out();
    wire->set_provider(key.provider);
    wire->set_repetition(key.repetition);
    wire->set_splits(splits);
  }
  PassesToWire(from.passes_over, to->mutable_passes_over());
  if (from.failure.has_value()) ToWire(*from.failure, to->mutable_failure());
  to->set_order_consumers(from.record.order_consumers);
  if (from.record.coordinated()) WriteRounds(from.record.rounds, to->mutable_rounds());
}

absl::StatusOr<IterationState> ReadIteration(const wire::Iteration& from) {
  IterationState to;
  to.id = IterationId(from.id());
  to.job = JobId(from.job());
  to.repetition = from.repetition();
  ASSIGN_OR_RETURN(to.division, FromWire(from.division()));
  if (to.division.count > 0 &&
      static_cast<size_t>(from.partitions_size()) > to.division.shards.size()) {
    return absl::DataLossError(absl::StrCat(ToString(to.id), " has more partitions than shards"));
  }
  if (from.keep() > static_cast<uint32_t>(protocol::CommitPolicy::kNever)) {
    return absl::InvalidArgumentError(absl::StrCat("unknown value ", from.keep(), " of keep"));
  }
  to.record.commit_policy = static_cast<protocol::CommitPolicy>(from.keep());
  to.record.at_least_once = from.at_least_once();
  to.leads.assign(from.leads().begin(), from.leads().end());
  if (from.order_consumers() < 0) return absl::DataLossError("the number of consumers is negative");
  to.record.order_consumers = from.order_consumers();
  to.record.closed = from.closed();
  to.record.finished = from.finished();
  for (const wire::Iteration::Partition& partition : from.partitions()) {
    RETURN_IF_ERROR(
        ReadPartition(partition, to.record.partitions.emplace_back(), to.splits.emplace_back()));
  }
  for (const wire::Iteration::Session& session : from.sessions()) {
    ASSIGN_OR_RETURN(protocol::ReaderRecord reader, ReadSession(session));
    to.record.readers.Add(std::move(reader));
  }
  for (const wire::Iteration::HandedOut& handed : from.handed_out()) {
    to.handed_out[{handed.provider(), handed.repetition()}] = handed.splits();
  }
  ASSIGN_OR_RETURN(to.passes_over, PassesFromWire(from.passes_over()));
  if (from.has_failure()) to.failure = FromWire(from.failure());
  if (from.has_rounds()) {
    ASSIGN_OR_RETURN(to.record.rounds, ReadRounds(from.rounds()));
    const protocol::RoundsRecord& rounds = to.record.rounds;
    const auto there = [&](PartitionId partition) { return to.record.Has(partition); };
    const auto entry_there = [&](const protocol::PartitionRow& entry) {
      return there(entry.partition);
    };
    if ((!rounds.ends.empty() && rounds.ends.size() != to.record.partitions.size()) ||
        !absl::c_all_of(rounds.schedule.joined, there) ||
        !absl::c_all_of(rounds.schedule.rotation, entry_there)) {
      return absl::DataLossError(
          absl::StrCat(ToString(to.id), " has rounds of partitions that it does not have"));
    }
  }
  to.record.forgotten = from.forgotten();
  if (to.record.finished) protocol::ForgetHistories(to.record);  // of older releases
  return to;
}

void WritePast(JobId job, int64_t repetition, const PastIteration& from, wire::PastIteration* to) {
  to->set_job(job.value());
  to->set_repetition(repetition);
  to->set_id(from.id.value());
  for (const Index end : from.ends) to->add_ends(end);
  if (from.more == nullptr) return;
  if (from.more->division.count > 0) ToWire(from.more->division, to->mutable_division());
  if (from.more->rounds.consumers > 0) WriteRounds(from.more->rounds, to->mutable_rounds());
  for (const PastIteration::Reader& reader : from.more->readers) {
    wire::PastIteration::Past* wire = to->add_readers();
    ToWire(Reader{reader.client, reader.incarnation, reader.consumer}, wire->mutable_reader());
    wire->set_status(static_cast<uint32_t>(reader.status));
    if (reader.mark.count > 0) WriteMark(reader.mark, wire->mutable_mark());
  }
}

absl::StatusOr<PastIteration> ReadPast(const wire::PastIteration& from) {
  PastIteration to{.id = IterationId(from.id()), .ends = {}, .more = nullptr};
  to.ends.assign(from.ends().begin(), from.ends().end());
  if (!from.has_division() && !from.has_rounds() && from.readers().empty()) return to;
  auto more = std::make_shared<PastIteration::More>();
  ASSIGN_OR_RETURN(more->division, FromWire(from.division()));
  if (from.has_rounds()) {
    ASSIGN_OR_RETURN(more->rounds, ReadRounds(from.rounds()));
  }
  for (const wire::PastIteration::Past& wire : from.readers()) {
    const Reader reader = FromWire(wire.reader());
    PastIteration::Reader& its = more->readers.emplace_back();
    its.client = reader.client;
    its.incarnation = reader.incarnation;
    its.consumer = static_cast<int32_t>(reader.consumer);
    its.mark = ReadMark(wire.mark());
    ASSIGN_OR_RETURN(its.status, ReadReaderStatus(wire.status()));
  }
  to.more = std::move(more);
  return to;
}

absl::Status ReadSnapshot(const wire::Snapshot& from, State& to) {
  for (const wire::BegunLife& wire : from.lives()) to.lives.push_back(ReadLife(wire));
  if (to.lives.empty() && from.term() > 0)
    to.lives.push_back({.life = {.term = Term(from.term())}});
  to.next_dataset = from.next_dataset();
  to.next_job = from.next_job();
  to.next_iteration = from.next_iteration();
  for (const wire::Dataset& wire : from.datasets()) {
    ASSIGN_OR_RETURN(DatasetRecord dataset, ReadDataset(wire));
    to.datasets[dataset.id] = std::make_shared<const DatasetRecord>(dataset);
  }
  for (const wire::Job& wire : from.jobs()) {
    ASSIGN_OR_RETURN(JobRecord job, ReadJob(wire, to));
    to.jobs.insert_or_assign(job.id, std::move(job));
  }
  for (const wire::Snapshot::JobName& name : from.names()) {
    to.job_names[name.name()] = JobId(name.job());
  }
  for (const wire::Iteration& wire : from.iterations()) {
    ASSIGN_OR_RETURN(IterationState iteration, ReadIteration(wire));
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
    ASSIGN_OR_RETURN(to.past[key], ReadPast(wire));
  }
  for (const wire::Worker& wire : from.workers()) {
    to.workers[WorkerId(wire.id())] = ReadWorker(wire);
  }
  for (const wire::Answered& wire : from.answers()) {
    ASSIGN_OR_RETURN(to.answers.emplace_back(), ReadAnswer(wire));
  }
  return absl::OkStatus();
}

constexpr size_t kPieceBytes = size_t{16} << 20;

// Cuts a snapshot into pieces.
class Pieces {
 public:
  explicit Pieces(size_t most_bytes) : most_bytes_(most_bytes) {}

  // The piece to write to next.
  wire::Snapshot& now() { return now_; }

  // Counts `written`, which was just written to now(). `words` name it in an error.
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
  for (const BegunLife& life : state.lives) WriteLife(life, pieces.now().add_lives());
  pieces.now().set_next_dataset(state.next_dataset);
  pieces.now().set_next_job(state.next_job);
  pieces.now().set_next_iteration(state.next_iteration);
  for (const auto& [id, dataset] : state.datasets) {
    wire::Dataset* wire = pieces.now().add_datasets();
    WriteDataset(*dataset, wire);
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
    WriteIteration(iteration, wire);
    RETURN_IF_ERROR(pieces.Wrote(*wire, ToString(id)));
  }
  for (const auto& [key, past] : state.past) {
    wire::PastIteration* wire = pieces.now().add_past();
    WritePast(key.first, key.second, past, wire);
    RETURN_IF_ERROR(pieces.Wrote(*wire, ToString(past.id)));
  }
  for (const auto& [id, worker] : state.workers) {
    wire::Worker* wire = pieces.now().add_workers();
    WriteWorker(worker, wire);
    RETURN_IF_ERROR(pieces.Wrote(*wire, ToString(id)));
  }
  for (const AnswerRecord& answer : state.answers) {
    wire::Answered* wire = pieces.now().add_answers();
    WriteAnswer(answer, wire);
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
  return state;
}

}  // namespace penstock::control
