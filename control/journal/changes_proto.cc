// SPDX-License-Identifier: Apache-2.0
// Changes to and from their wire form. States are in state_proto.cc.
#include "control/journal/changes_proto.h"

#include "absl/strings/str_cat.h"
#include "control/journal/records_proto.h"

namespace penstock::control {
namespace {

wire::IterationAltered::Placing* Place(PartitionId partition, Placement placement,
                                       wire::IterationAltered::Placing* to) {
  to->set_partition(partition.value());
  to->set_placement(placement.value());
  return to;
}

// One overload per change of the protocol.
struct WriteProtocolChange {
  wire::IterationAltered* to;

  void operator()(const protocol::PartitionOpened& c) const {
    to->set_partition_opened(c.partition.value());
  }
  void operator()(const protocol::PlacementRaised& c) const {
    Place(c.partition, c.placement, to->mutable_placement_raised());
  }
  void operator()(const protocol::PartitionAssigned& c) const {
    Place(c.partition, c.placement, to->mutable_partition_assigned())->set_worker(c.worker.value());
  }
  void operator()(const protocol::BookmarkAdded& c) const {
    to->mutable_bookmark_added()->set_partition(c.partition.value());
    WriteBookmark(c.bookmark, to->mutable_bookmark_added()->mutable_bookmark());
  }
  void operator()(const protocol::BookmarksRetired& c) const {
    to->mutable_bookmarks_retired()->set_partition(c.partition.value());
    to->mutable_bookmarks_retired()->set_below(c.below);
  }
  void operator()(const protocol::ReaderJoined& c) const {
    ToWire(Reader{c.client, c.incarnation, c.consumer}, to->mutable_reader_joined());
  }
  void operator()(const protocol::ReaderReplaced& c) const {
    ToWire(Reader{c.client, c.incarnation}, to->mutable_reader_replaced()->mutable_reader());
    WriteReceivedSets(c.committed, to->mutable_reader_replaced()->mutable_committed());
    to->mutable_reader_replaced()->set_start(c.start);
  }
  void operator()(const protocol::ReaderCommitted& c) const {
    to->mutable_reader_committed()->set_client(c.client.value());
    to->mutable_reader_committed()->set_partition(c.partition.value());
    ToWire(c.added, to->mutable_reader_committed()->mutable_added());
  }
  void operator()(const protocol::ReaderGone& c) const {
    to->mutable_reader_gone()->set_client(c.client.value());
    to->mutable_reader_gone()->set_status(static_cast<uint32_t>(c.status));
  }
  void operator()(const protocol::ReaderEnded& c) const {
    to->mutable_reader_ended()->set_client(c.client.value());
    WriteReceivedSets(c.final, to->mutable_reader_ended()->mutable_final());
  }
  void operator()(const protocol::IterationClosed& c) const {
    to->mutable_closed();
    for (Index end : c.ends) to->mutable_closed()->add_ends(end);
  }
  void operator()(const protocol::IterationReopened&) const { to->mutable_reopened(); }
  void operator()(const protocol::IterationFinished&) const { to->mutable_finished(); }
  void operator()(const protocol::ConsumersFormed&) const { to->mutable_consumers_formed(); }
  void operator()(const protocol::RoundsRescheduled& c) const {
    WriteRoundEvent(c.event, to->mutable_rescheduled());
  }
  void operator()(const protocol::RemaindersPlanned& c) const {
    to->mutable_remainders_planned();
    for (Index end : c.ends) to->mutable_remainders_planned()->add_ends(end);
  }
  void operator()(const protocol::RoundsForgotten& c) const { to->set_rounds_forgotten(c.below); }
};

struct WriteChange {
  wire::Change* to;
  const State& state;

  void operator()(const LifeBegun& c) const { WriteLife(c.begun, to->mutable_life_begun()); }
  void operator()(const DatasetRegistered& c) const {
    WriteDataset(*c.dataset, to->mutable_dataset_registered());
  }
  void operator()(const DatasetUnregistered& c) const { to->set_dataset_unregistered(c.id); }
  void operator()(const JobCreated& c) const { WriteJob(c.job, state, to->mutable_job_created()); }
  void operator()(const JobCancelled& c) const { to->set_job_cancelled(c.job.value()); }
  void operator()(const JobRemoved& c) const { to->set_job_removed(c.job.value()); }
  void operator()(const IterationCreated& c) const {
    to->mutable_iteration_created()->set_iteration(c.iteration.value());
    to->mutable_iteration_created()->set_job(c.job.value());
    to->mutable_iteration_created()->set_repetition(c.repetition);
    if (c.division.count > 0) {
      ToWire(c.division, to->mutable_iteration_created()->mutable_division());
    }
    for (const int64_t lead : c.leads) to->mutable_iteration_created()->add_leads(lead);
    PassesToWire(c.passes_over, to->mutable_iteration_created()->mutable_passes_over());
  }
  void operator()(const IterationAltered& c) const {
    to->mutable_iteration_altered()->set_iteration(c.iteration.value());
    std::visit(WriteProtocolChange{to->mutable_iteration_altered()}, c.change);
  }
  void operator()(const IterationFailed& c) const {
    to->mutable_iteration_failed()->set_iteration(c.iteration.value());
    ToWire(c.status, to->mutable_iteration_failed()->mutable_status());
  }
  void operator()(const SplitsGiven& c) const {
    to->mutable_splits_given()->set_iteration(c.partition.iteration.value());
    to->mutable_splits_given()->set_partition(c.partition.partition.value());
    ToWire(c.run, to->mutable_splits_given()->mutable_run());
  }
  void operator()(const BookmarkMarked& c) const {
    to->mutable_bookmark_marked()->set_iteration(c.partition.iteration.value());
    to->mutable_bookmark_marked()->set_partition(c.partition.partition.value());
    WriteMarked(c.bookmark, to->mutable_bookmark_marked()->mutable_bookmark());
  }
  void operator()(const WorkerRegistered& c) const {
    WriteWorker(c.worker, to->mutable_worker_registered());
  }
  void operator()(const WorkerDraining& c) const { to->set_worker_draining(c.worker.value()); }
  void operator()(const WorkerGone& c) const { to->set_worker_gone(c.worker.value()); }
  void operator()(const Answered& c) const { WriteAnswer(c.answer, to->mutable_answered()); }
  void operator()(const IterationRetired& c) const {
    to->set_iteration_retired(c.iteration.value());
  }
  void operator()(const IterationRecalled& c) const {
    to->mutable_iteration_recalled()->set_job(c.job.value());
    to->mutable_iteration_recalled()->set_repetition(c.repetition);
  }
};

absl::StatusOr<protocol::IterationChange> ReadProtocolChange(const wire::IterationAltered& from) {
  using wire::IterationAltered;
  switch (from.change_case()) {
    case IterationAltered::kPartitionOpened:
      return protocol::PartitionOpened{PartitionId(from.partition_opened())};
    case IterationAltered::kPlacementRaised:
      return protocol::PlacementRaised{PartitionId(from.placement_raised().partition()),
                                       Placement(from.placement_raised().placement())};
    case IterationAltered::kPartitionAssigned:
      return protocol::PartitionAssigned{PartitionId(from.partition_assigned().partition()),
                                         Placement(from.partition_assigned().placement()),
                                         WorkerId(from.partition_assigned().worker())};
    case IterationAltered::kBookmarkAdded:
      return protocol::BookmarkAdded{PartitionId(from.bookmark_added().partition()),
                                     ReadBookmark(from.bookmark_added().bookmark())};
    case IterationAltered::kBookmarksRetired:
      return protocol::BookmarksRetired{PartitionId(from.bookmarks_retired().partition()),
                                        from.bookmarks_retired().below()};
    case IterationAltered::kReaderJoined:
      return protocol::ReaderJoined{ClientId(from.reader_joined().client()),
                                    Incarnation(from.reader_joined().incarnation()),
                                    FromWire(from.reader_joined()).consumer};
    case IterationAltered::kReaderReplaced: {
      ASSIGN_OR_RETURN(protocol::ReceivedSets committed,
                       ReadReceivedSets(from.reader_replaced().committed()));
      const Reader reader = FromWire(from.reader_replaced().reader());
      return protocol::ReaderReplaced{reader.client, reader.incarnation, std::move(committed),
                                      from.reader_replaced().start()};
    }
    case IterationAltered::kReaderCommitted: {
      ASSIGN_OR_RETURN(IndexSet added, FromWire(from.reader_committed().added()));
      return protocol::ReaderCommitted{ClientId(from.reader_committed().client()),
                                       PartitionId(from.reader_committed().partition()),
                                       std::move(added)};
    }
    case IterationAltered::kReaderGone: {
      ASSIGN_OR_RETURN(protocol::ReaderStatus status,
                       ReadReaderStatus(from.reader_gone().status()));
      return protocol::ReaderGone{ClientId(from.reader_gone().client()), status};
    }
    case IterationAltered::kReaderEnded: {
      ASSIGN_OR_RETURN(protocol::ReceivedSets final, ReadReceivedSets(from.reader_ended().final()));
      return protocol::ReaderEnded{ClientId(from.reader_ended().client()), std::move(final)};
    }
    case IterationAltered::kClosed: {
      protocol::IterationClosed closed;
      for (int64_t end : from.closed().ends()) closed.ends.push_back(end);
      return closed;
    }
    case IterationAltered::kReopened:
      return protocol::IterationReopened{};
    case IterationAltered::kFinished:
      return protocol::IterationFinished{};
    case IterationAltered::kConsumersFormed:
      return protocol::ConsumersFormed{};
    case IterationAltered::kRescheduled: {
      ASSIGN_OR_RETURN(protocol::RoundEvent event, ReadRoundEvent(from.rescheduled()));
      return protocol::RoundsRescheduled{event};
    }
    case IterationAltered::kRemaindersPlanned: {
      protocol::RemaindersPlanned planned;
      for (int64_t end : from.remainders_planned().ends()) planned.ends.push_back(end);
      return planned;
    }
    case IterationAltered::kRoundsForgotten:
      return protocol::RoundsForgotten{from.rounds_forgotten()};
    case IterationAltered::CHANGE_NOT_SET:
      break;
  }
  return absl::DataLossError("a change has no content");
}

absl::StatusOr<Change> ReadChange(const wire::Change& from, const State& state) {
  switch (from.change_case()) {
    case wire::Change::kTermRaised:
      return LifeBegun{{.life = {.term = Term(from.term_raised())}}};
    case wire::Change::kLifeBegun:
      return LifeBegun{ReadLife(from.life_begun())};
    case wire::Change::kDatasetRegistered: {
      ASSIGN_OR_RETURN(DatasetRecord dataset, ReadDataset(from.dataset_registered()));
      return DatasetRegistered{std::make_shared<const DatasetRecord>(std::move(dataset))};
    }
    case wire::Change::kDatasetUnregistered:
      return DatasetUnregistered{from.dataset_unregistered()};
    case wire::Change::kJobCreated: {
      ASSIGN_OR_RETURN(JobRecord job, ReadJob(from.job_created(), state));
      return JobCreated{std::move(job)};
    }
    case wire::Change::kJobCancelled:
      return JobCancelled{JobId(from.job_cancelled())};
    case wire::Change::kJobRemoved:
      return JobRemoved{JobId(from.job_removed())};
    case wire::Change::kIterationCreated: {
      ASSIGN_OR_RETURN(Division division, FromWire(from.iteration_created().division()));
      const auto& leads = from.iteration_created().leads();
      ASSIGN_OR_RETURN(PassesOver over, PassesFromWire(from.iteration_created().passes_over()));
      return IterationCreated{IterationId(from.iteration_created().iteration()),
                              JobId(from.iteration_created().job()),
                              from.iteration_created().repetition(),
                              std::move(division),
                              {leads.begin(), leads.end()},
                              std::move(over)};
    }
    case wire::Change::kIterationAltered: {
      ASSIGN_OR_RETURN(protocol::IterationChange change,
                       ReadProtocolChange(from.iteration_altered()));
      return IterationAltered{IterationId(from.iteration_altered().iteration()), std::move(change)};
    }
    case wire::Change::kIterationFailed:
      return IterationFailed{IterationId(from.iteration_failed().iteration()),
                             FromWire(from.iteration_failed().status())};
    case wire::Change::kSplitsGiven: {
      ASSIGN_OR_RETURN(SplitRun run, FromWire(from.splits_given().run()));
      return SplitsGiven{{IterationId(from.splits_given().iteration()),
                          PartitionId(from.splits_given().partition())},
                         std::move(run)};
    }
    case wire::Change::kBookmarkMarked:
      return BookmarkMarked{{IterationId(from.bookmark_marked().iteration()),
                             PartitionId(from.bookmark_marked().partition())},
                            ReadMarked(from.bookmark_marked().bookmark())};
    case wire::Change::kWorkerRegistered:
      return WorkerRegistered{ReadWorker(from.worker_registered())};
    case wire::Change::kWorkerDraining:
      return WorkerDraining{WorkerId(from.worker_draining())};
    case wire::Change::kWorkerGone:
      return WorkerGone{WorkerId(from.worker_gone())};
    case wire::Change::kAnswered: {
      ASSIGN_OR_RETURN(AnswerRecord answer, ReadAnswer(from.answered()));
      return Answered{std::move(answer)};
    }
    case wire::Change::kIterationRetired:
      return IterationRetired{IterationId(from.iteration_retired())};
    case wire::Change::kIterationRecalled:
      return IterationRecalled{JobId(from.iteration_recalled().job()),
                               from.iteration_recalled().repetition()};
    case wire::Change::CHANGE_NOT_SET:
      break;
  }
  return absl::DataLossError("a change has no content");
}

absl::StatusOr<wire::Changes> ParseRecord(std::string_view record) {
  wire::Changes wire;
  if (!wire.ParseFromArray(record.data(), static_cast<int>(record.size()))) {
    return absl::DataLossError("its bytes cannot be parsed as changes");
  }
  RETURN_IF_ERROR(CheckKnown(record, *wire.GetDescriptor()));
  return wire;
}

}  // namespace

absl::StatusOr<std::string> EncodeChanges(absl::Span<const Change> changes, const State& state,
                                          size_t most_bytes) {
  wire::Changes wire;
  for (const Change& change : changes) std::visit(WriteChange{wire.add_changes(), state}, change);
  if (const size_t bytes = wire.ByteSizeLong(); bytes > most_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a record of the journal would have ", bytes,
                                                     " bytes; the limit is ", most_bytes));
  }
  return wire.SerializeAsString();
}

absl::Status ApplyRecord(std::string_view record, State& state) {
  ASSIGN_OR_RETURN(const wire::Changes wire, ParseRecord(record));
  for (const wire::Change& from : wire.changes()) {
    absl::StatusOr<Change> change = ReadChange(from, state);
    absl::Status fits = change.ok() ? Fits(state, *change) : change.status();
    if (!fits.ok()) return absl::DataLossError(fits.message());
    state.Apply(*change);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ApplyWhatFits(std::string_view record, State& state,
                                                       std::set<IterationId>& ended) {
  ASSIGN_OR_RETURN(const wire::Changes wire, ParseRecord(record));
  std::vector<std::string> lines;
  for (const wire::Change& from : wire.changes()) {
    const absl::StatusOr<Change> change = ReadChange(from, state);
    const absl::Status fits = change.ok() ? Fits(state, *change) : change.status();
    const IterationId id =
        change.ok() ? IterationOf(*change) : IterationId(from.iteration_altered().iteration());
    if (ended.contains(id)) continue;
    if (fits.ok()) {
      state.Apply(*change);
    } else if (const IterationState* iteration = id ? state.FindIteration(id) : nullptr) {
      const std::string& job = state.jobs.at(iteration->job).name;
      lines.push_back(absl::StrCat(std::string(fits.message()), ": epoch ", iteration->repetition,
                                   " of job ", job, " is ended"));
      state.Apply(IterationFailed{
          id, absl::DataLossError(absl::StrCat("the journal of the dispatcher was repaired: ",
                                               std::string(fits.message())))});
      ended.insert(id);
    } else if (change.ok()) {
      lines.push_back(absl::StrCat(std::string(fits.message()), ": skipped"));
    } else {
      return fits;  // its iteration is unknown
    }
  }
  return lines;
}

std::string DescribeRecord(std::string_view record) {
  wire::Changes wire;
  if (!wire.ParseFromArray(record.data(), static_cast<int>(record.size()))) return "unreadable";
  // Definitions are long and not readable. A token lets its holder read the job.
  for (wire::Change& change : *wire.mutable_changes()) {
    if (change.has_dataset_registered()) change.mutable_dataset_registered()->clear_definition();
    if (change.has_job_created()) change.mutable_job_created()->clear_token();
    if (change.has_answered() && change.answered().has_job())
      change.mutable_answered()->mutable_job()->clear_token();
  }
  return wire.ShortDebugString();
}

}  // namespace penstock::control
