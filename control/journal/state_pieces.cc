// SPDX-License-Identifier: Apache-2.0
#include "control/journal/state_pieces.h"

#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace penstock::control {
namespace {

using PieceKind = PieceKey::Kind;

PieceKey PartitionsWith(IterationId iteration, PartitionId partition) {
  const uint64_t at = partition ? partition.value() - 1 : 0;
  return {PieceKind::kPartitions, iteration.value(),
          static_cast<int64_t>(at / kPartitionsPerPiece)};
}

void VisitPartitions(const IterationState& iteration, PieceVisitor visit) {
  for (size_t at = 0; at < iteration.record.partitions.size(); at += kPartitionsPerPiece)
    visit(PartitionsWith(iteration.id, PartitionId(at + 1)));
}

void VisitReaders(const IterationState& iteration, PieceVisitor visit) {
  for (size_t r = 0; r < iteration.record.readers.size(); ++r)
    visit({PieceKind::kReader, iteration.id.value(), static_cast<int64_t>(r)});
}

void VisitIteration(const IterationState& iteration, PieceVisitor visit) {
  visit({PieceKind::kIteration, iteration.id.value()});
  VisitPartitions(iteration, visit);
  VisitReaders(iteration, visit);
}

// Visits the pieces of the iteration that a change of its record changes.
struct OfIteration {
  const IterationState& iteration;
  PieceVisitor visit;

  void Head() const { visit({PieceKind::kIteration, iteration.id.value()}); }
  void Reader(ClientId client) const {
    const auto at = iteration.record.FindReader(client);
    if (at) visit({PieceKind::kReader, iteration.id.value(), static_cast<int64_t>(*at)});
  }

  // --- Partitions ---
  void operator()(const protocol::PartitionOpened& c) const { Partition(c); }
  void operator()(const protocol::PlacementRaised& c) const { Partition(c); }
  void operator()(const protocol::PartitionAssigned& c) const { Partition(c); }
  void operator()(const protocol::AudienceExtended& c) const { Partition(c); }
  void operator()(const protocol::BookmarkAdded& c) const { Partition(c); }
  void operator()(const protocol::BookmarksRetired& c) const {
    Partition(c);
    Head();  // passes may be over
  }
  void Partition(const auto& change) const {
    visit(PartitionsWith(iteration.id, change.partition));
  }

  // --- Readers ---
  void operator()(const protocol::ReaderJoined&) const {
    const size_t next = iteration.record.readers.size();
    visit({PieceKind::kReader, iteration.id.value(), static_cast<int64_t>(next)});
  }
  void operator()(const protocol::ReaderReplaced& c) const { Reader(c.client); }
  void operator()(const protocol::ReaderCommitted& c) const { Reader(c.client); }
  void operator()(const protocol::ReaderGone& c) const { Reader(c.client); }
  void operator()(const protocol::ReaderEnded& c) const { Reader(c.client); }
  void operator()(const protocol::ConsumersFormed&) const { VisitReaders(iteration, visit); }

  // --- The iteration ---
  void operator()(const protocol::IterationClosed&) const {
    Head();
    VisitPartitions(iteration, visit);
  }
  void operator()(const protocol::IterationReopened&) const { Head(); }
  void operator()(const protocol::IterationFinished&) const { VisitIteration(iteration, visit); }
  void operator()(const protocol::RoundsRescheduled&) const { Head(); }
  void operator()(const protocol::RemaindersPlanned&) const { Head(); }
  void operator()(const protocol::RoundsForgotten&) const { Head(); }
};

struct OfChange {
  const State& before;
  PieceVisitor visit;

  void Common() const { visit({PieceKind::kCommon}); }
  void Job(JobId job) const { visit({PieceKind::kJob, job.value()}); }
  void Worker(WorkerId worker) const { visit({PieceKind::kWorker, worker.value()}); }
  void Whole(IterationId id) const {
    if (const IterationState* iteration = before.FindIteration(id); iteration != nullptr)
      VisitIteration(*iteration, visit);
  }

  void operator()(const LifeBegun&) const { Common(); }
  void operator()(const FormatFinalised&) const { Common(); }

  // A job's piece has the definition that it reads, if the id has another one.
  void Dataset(const std::string& id) const {
    visit({.kind = PieceKind::kDataset, .name = id});
    for (const auto& [job, record] : before.jobs)
      if (record.dataset->id == id) Job(job);
  }
  void operator()(const DatasetRegistered& c) const {
    Common();
    Dataset(c.dataset->id);
  }
  void operator()(const DatasetUnregistered& c) const { Dataset(c.id); }

  void operator()(const JobCreated& c) const {
    Common();
    Job(c.job.id);
    const auto had_the_name = before.job_names.find(c.job.name);
    if (had_the_name != before.job_names.end()) Job(had_the_name->second);
  }
  void operator()(const JobCancelled& c) const {
    Job(c.job);
    for (IterationId iteration : before.IterationsOf(c.job)) Whole(iteration);
  }
  void operator()(const JobRemoved& c) const {
    (*this)(JobCancelled{c.job});
    for (int64_t repetition : before.PastOf(c.job))
      visit({PieceKind::kPast, c.job.value(), repetition});
  }

  void operator()(const IterationCreated& c) const {
    Common();
    visit({PieceKind::kIteration, c.iteration.value()});
  }
  void operator()(const IterationAltered& c) const {
    const IterationState* iteration = before.FindIteration(c.iteration);
    if (iteration != nullptr) std::visit(OfIteration{*iteration, visit}, c.change);
  }
  void operator()(const IterationFailed& c) const { Whole(c.iteration); }
  void operator()(const IterationRetired& c) const {
    const IterationState* iteration = before.FindIteration(c.iteration);
    if (iteration == nullptr) return;
    VisitIteration(*iteration, visit);
    visit({PieceKind::kPast, iteration->job.value(), iteration->repetition});
  }
  void operator()(const IterationRecalled& c) const {
    visit({PieceKind::kPast, c.job.value(), c.repetition});
    if (const auto recalled = before.FindPast(c.job, c.repetition))
      VisitIteration(*recalled, visit);
  }
  void operator()(const SplitsGiven& c) const {
    visit({PieceKind::kIteration, c.partition.iteration.value()});  // counts the splits given out
    visit(PartitionsWith(c.partition.iteration, c.partition.partition));
  }
  void operator()(const BookmarkMarked& c) const {
    visit(PartitionsWith(c.partition.iteration, c.partition.partition));
  }

  // A worker that returns is no former worker.
  void operator()(const WorkerRegistered& c) const {
    Common();
    Worker(c.worker.id);
  }
  void operator()(const WorkerDraining& c) const { Worker(c.worker); }
  void operator()(const WorkerGone& c) const {
    Common();
    Worker(c.worker);
  }

  void operator()(const Answered&) const { visit({PieceKind::kAnswers}); }
};

}  // namespace

std::string ToBytes(const PieceKey& key) {
  switch (key.kind) {
    case PieceKind::kCommon:
      return "common";
    case PieceKind::kAnswers:
      return "answers";
    case PieceKind::kDataset:
      return absl::StrCat("dataset/", key.name);
    case PieceKind::kJob:
      return absl::StrFormat("job/%020d", key.id);
    case PieceKind::kIteration:
      return absl::StrFormat("iteration/%020d", key.id);
    case PieceKind::kPartitions:
      return absl::StrFormat("iteration/%020d/partitions/%020d", key.id, key.part);
    case PieceKind::kReader:
      return absl::StrFormat("iteration/%020d/reader/%020d", key.id, key.part);
    case PieceKind::kPast:
      return absl::StrFormat("past/%020d/%020d", key.id, key.part);
    case PieceKind::kWorker:
      return absl::StrFormat("worker/%020d", key.id);
  }
  return {};
}

void ForEachPiece(const State& state, PieceVisitor visit) {
  visit({PieceKind::kCommon});
  visit({PieceKind::kAnswers});
  for (const auto& [id, dataset] : state.datasets) visit({.kind = PieceKind::kDataset, .name = id});
  for (const auto& [id, job] : state.jobs) visit({PieceKind::kJob, id.value()});
  for (const auto& [id, iteration] : state.iterations) VisitIteration(iteration, visit);
  for (const auto& [key, past] : state.past)
    visit({PieceKind::kPast, key.first.value(), key.second});
  for (const auto& [id, worker] : state.workers) visit({PieceKind::kWorker, id.value()});
}

void ForEachPieceOf(const State& before, const Change& change, PieceVisitor visit) {
  std::visit(OfChange{before, visit}, change);
}

}  // namespace penstock::control
