// SPDX-License-Identifier: Apache-2.0
// Converts changes to and from their wire form. state_proto.cc converts states.
#include "control/journal/changes_proto.h"

#include "absl/strings/str_cat.h"
#include "control/journal/records_proto.h"
#include "include/status_macros.h"

namespace penstock::control {

// --- The protocol's changes ---

WIRE_STRUCT(protocol::PlacementRaised, wire::IterationAltered::Placing, partition, placement);
WIRE_STRUCT(protocol::PartitionAssigned, wire::IterationAltered::Placing, partition, placement,
            worker, audience);
WIRE_STRUCT(protocol::AudienceExtended, wire::IterationAltered::AudienceExtended, partition, added);
WIRE_STRUCT(protocol::BookmarkAdded, wire::IterationAltered::BookmarkAdded, partition, bookmark);
WIRE_STRUCT(protocol::BookmarksRetired, wire::IterationAltered::BookmarksRetired, partition, below);
WIRE_PAIR(protocol::ReaderJoined, wire::Reader) {
  WIRE_FIELDS(client, incarnation);
  WIRE_FIELD_IF(value.consumer >= 0, consumer);
}
WIRE_STRUCT(protocol::ReaderReplaced, wire::Reader, client, incarnation);
WIRE_PAIR(protocol::ReaderReplaced, wire::IterationAltered::ReaderReplaced) {
  WIRE_PART(reader);
  WIRE_FIELDS(committed, start);
}
WIRE_STRUCT(protocol::ReaderCommitted, wire::IterationAltered::ReaderCommitted, client, partition,
            added);
WIRE_STRUCT(protocol::ReaderGone, wire::IterationAltered::ReaderGone, client, status);
WIRE_STRUCT(protocol::ReaderEnded, wire::IterationAltered::ReaderEnded, client, final);
WIRE_STRUCT(protocol::IterationClosed, wire::IterationAltered::Closed, ends);
WIRE_PAIR(protocol::IterationReopened, wire::Empty) {}
WIRE_PAIR(protocol::IterationFinished, wire::Empty) {}
WIRE_PAIR(protocol::ConsumersFormed, wire::Empty) {}
WIRE_PAIR(protocol::RoundsRescheduled, wire::IterationAltered::RoundEvent) {
  Fields(coder, value.event, message);
}
WIRE_STRUCT(protocol::RemaindersPlanned, wire::IterationAltered::Closed, ends);

WIRE_PAIR(protocol::IterationChange, wire::IterationAltered) {
  WIRE_CASE_SCALAR(protocol::PartitionOpened, partition, partition_opened);
  WIRE_CASE(protocol::PlacementRaised, placement_raised);
  WIRE_CASE(protocol::PartitionAssigned, partition_assigned);
  WIRE_CASE(protocol::BookmarkAdded, bookmark_added);
  WIRE_CASE(protocol::BookmarksRetired, bookmarks_retired);
  WIRE_CASE(protocol::ReaderJoined, reader_joined);
  WIRE_CASE(protocol::ReaderReplaced, reader_replaced);
  WIRE_CASE(protocol::ReaderCommitted, reader_committed);
  WIRE_CASE(protocol::ReaderGone, reader_gone);
  WIRE_CASE(protocol::ReaderEnded, reader_ended);
  WIRE_CASE(protocol::IterationClosed, closed);
  WIRE_CASE(protocol::IterationReopened, reopened);
  WIRE_CASE(protocol::IterationFinished, finished);
  WIRE_CASE(protocol::ConsumersFormed, consumers_formed);
  WIRE_CASE(protocol::RoundsRescheduled, rescheduled);
  WIRE_CASE(protocol::RemaindersPlanned, remainders_planned);
  WIRE_CASE_SCALAR(protocol::RoundsForgotten, below, rounds_forgotten);
  WIRE_CASE(protocol::AudienceExtended, audience_extended);
  coder.Require(message.change_case() != 0, "a change has no content");
}

// --- The dispatcher's changes ---

WIRE_PAIR(LifeBegun, wire::BegunLife) {
  Fields(coder, value.begun, message);
}
WIRE_PAIR(DatasetRegistered, wire::Dataset) {
  Fields(coder, value.dataset, message);
}
WIRE_PAIR(IterationCreated, wire::IterationCreated) {
  WIRE_FIELDS(iteration, job, repetition, leads, passes_over);
  WIRE_FIELD_IF(value.division.count > 0, division);
}
WIRE_PAIR(IterationAltered, wire::IterationAltered) {
  WIRE_FIELDS(iteration);
  Fields(coder, value.change, message);
}
WIRE_STRUCT(IterationFailed, wire::IterationFailed, iteration, status);
WIRE_PAIR(SplitsGiven, wire::SplitsGiven) {
  WIRE_FIELD_AS(partition.iteration, iteration);
  WIRE_FIELD_AS(partition.partition, partition);
  WIRE_FIELDS(run);
}
WIRE_PAIR(BookmarkMarked, wire::BookmarkMarked) {
  WIRE_FIELD_AS(partition.iteration, iteration);
  WIRE_FIELD_AS(partition.partition, partition);
  WIRE_FIELDS(bookmark);
}
WIRE_PAIR(WorkerRegistered, wire::Worker) {
  Fields(coder, value.worker, message);
}
WIRE_PAIR(Answered, wire::Answered) {
  Fields(coder, value.answer, message);
}
WIRE_STRUCT(IterationRecalled, wire::IterationRecalled, job, repetition);

// Converts all changes except JobCreated, which needs the state.
WIRE_PAIR(Change, wire::Change) {
  WIRE_CASE(LifeBegun, life_begun);
  WIRE_CASE(DatasetRegistered, dataset_registered);
  WIRE_CASE_SCALAR(DatasetUnregistered, id, dataset_unregistered);
  WIRE_CASE_SCALAR(JobCancelled, job, job_cancelled);
  WIRE_CASE_SCALAR(JobRemoved, job, job_removed);
  WIRE_CASE(IterationCreated, iteration_created);
  WIRE_CASE(IterationAltered, iteration_altered);
  WIRE_CASE(IterationFailed, iteration_failed);
  WIRE_CASE(SplitsGiven, splits_given);
  WIRE_CASE(BookmarkMarked, bookmark_marked);
  WIRE_CASE(WorkerRegistered, worker_registered);
  WIRE_CASE_SCALAR(WorkerDraining, worker, worker_draining);
  WIRE_CASE_SCALAR(WorkerGone, worker, worker_gone);
  WIRE_CASE(Answered, answered);
  WIRE_CASE_SCALAR(IterationRetired, iteration, iteration_retired);
  WIRE_CASE(IterationRecalled, iteration_recalled);
  WIRE_CASE_SCALAR(FormatFinalised, format, format_finalised);
  coder.Require(message.change_case() != 0, "a change has no content");
}

namespace {

void WriteChange(const Change& from, const State& state, wire::Change* to) {
  if (const auto* created = std::get_if<JobCreated>(&from)) {
    WriteJob(created->job, state, to->mutable_job_created());
  } else {
    Encoder(state.format).Put(from, to);
  }
}

absl::StatusOr<Change> ReadChange(const wire::Change& from, const State& state) {
  if (from.has_job_created()) {
    ASSIGN_OR_RETURN(JobRecord job, ReadJob(from.job_created(), state));
    return JobCreated{std::move(job)};
  }
  if (from.has_term_raised()) return LifeBegun{{.life = {.term = Term(from.term_raised())}}};
  return Decode<Change>(from);
}

absl::StatusOr<wire::Changes> ParseRecord(std::string_view record) {
  wire::Changes wire;
  if (!wire.ParseFromArray(record.data(), static_cast<int>(record.size()))) {
    return absl::DataLossError("its bytes cannot be parsed as changes");
  }
  RETURN_IF_ERROR(CheckKnown(record, *wire.GetDescriptor()));
  for (const wire::Change& change : wire.changes())
    RETURN_IF_ERROR(CheckFormat(change.format_finalised()));
  return wire;
}

}  // namespace

absl::StatusOr<std::string> EncodeChanges(absl::Span<const Change> changes, const State& state,
                                          size_t most_bytes) {
  wire::Changes wire;
  for (const Change& change : changes) WriteChange(change, state, wire.add_changes());
  if (const size_t bytes = wire.ByteSizeLong(); bytes > most_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a record of the journal would have ", bytes,
                                                     " bytes; the limit is ", most_bytes));
  }
  return wire.SerializeAsString();
}

absl::Status ApplyRecord(std::string_view record, State& state,
                         absl::FunctionRef<void(const Change&)> before) {
  ASSIGN_OR_RETURN(const wire::Changes wire, ParseRecord(record));
  for (const wire::Change& from : wire.changes()) {
    absl::StatusOr<Change> change = ReadChange(from, state);
    absl::Status fits = change.ok() ? Fits(state, *change) : change.status();
    if (absl::IsFailedPrecondition(change.status())) return change.status();  // a newer release's
    if (!fits.ok()) return absl::DataLossError(fits.message());
    before(*change);
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
    if (absl::IsFailedPrecondition(change.status())) return change.status();  // a newer release's
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
      return absl::DataLossError(fits.message());  // the iteration of the unreadable change is
                                                   // unknown
    }
  }
  return lines;
}

std::string DescribeRecord(std::string_view record) {
  wire::Changes wire;
  if (!wire.ParseFromArray(record.data(), static_cast<int>(record.size()))) return "unreadable";
  // Removes definitions, which are long and not readable, and the tokens that older releases wrote,
  // because the holder of a token may read the job.
  for (wire::Change& change : *wire.mutable_changes()) {
    if (change.has_dataset_registered()) change.mutable_dataset_registered()->clear_definition();
    if (change.has_job_created()) change.mutable_job_created()->clear_token();
    if (change.has_answered() && change.answered().has_job())
      change.mutable_answered()->mutable_job()->clear_token();
  }
  return wire.ShortDebugString();
}

}  // namespace penstock::control
