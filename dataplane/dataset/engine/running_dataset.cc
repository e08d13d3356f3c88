// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/running_dataset.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "control/sync/random.h"
#include "dataplane/dataset/engine/epochs.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/registry.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/memory/catch_exhausted.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

bool IsElsewhere(const Dataset::Node& node) {
  const NodeKind* kind = FindNodeKind(node.op);
  return kind != nullptr && kind->elsewhere;
}

bool WaitsForOthers(const Dataset::Node& root) {
  bool waits = false;
  VisitNodes(root, [&](const Dataset::Node& node, int) { waits |= IsElsewhere(node); });
  return waits;
}

}  // namespace

absl::StatusOr<State> UnfinishedState::Finish() const {
  StateSections finished;
  for (const StateExchange::Unfinished& section : sections) {
    ASSIGN_OR_RETURN(finished[section.node].bytes, section.finish());
    finished[section.node].at = section.at;
  }
  StateWriter writer;
  Write(finished, writer);
  return State{absl::StrCat(EncodeStateHead(head), writer.bytes(), position)};
}

RunningDataset::RunningDataset(Dataset dataset, uint64_t seed, std::optional<int64_t> epoch,
                               Pool* output, std::stop_token stop)
    : dataset_(std::move(dataset)),
      counts_epochs_(!epoch.has_value()),
      waits_for_others_(WaitsForOthers(*NodeOf(dataset_))),
      counts_deliveries_(waits_for_others_ && !IsElsewhere(*NodeOf(dataset_))),
      profile_(NodeOf(dataset_)),
      origin_(RandomNumber()) {
  context_.profile = &profile_;
  context_.seed = seed;
  context_.repetition = counts_epochs_ ? BeginEpoch(dataset_) : *epoch;
  context_.of_dataset = true;
  context_.output = output;
  context_.output_ahead = true;
  context_.stop = std::move(stop);
  context_.commits = &commits_;
  context_.kept = &kept_by_nodes_;
  context_.states = states_;
}

absl::Status RunningDataset::Start() {
  ready_ = nullptr;
  ASSIGN_OR_RETURN(nodes_, BuildIterator(dataset_, context_));
  ready_ = dynamic_cast<ReadyHint*>(nodes_.get());
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Element>> RunningDataset::Next() {
  // If Distribute is the last node, Distribute itself counts its elements as delivered.
  const PendingDeliveries::Scope scope(counts_deliveries_ ? &pending_ : nullptr);
  RETURN_IF_ERROR(EnsureRestored());
  absl::StatusOr<std::optional<Element>> next = nodes_->Next();
  if (next.ok() && !next->has_value()) {
    RETURN_IF_ERROR(pending_.Deliver());  // of elements that a node dropped
    RETURN_IF_ERROR(commits_.AwaitEnd());
  }
  return next;
}

absl::StatusOr<std::optional<Element>> RunningDataset::Deliver(
    absl::StatusOr<std::optional<Element>> next) {
  if (absl::IsCancelled(next.status()) || IsExhausted(next.status())) return next;
  RETURN_IF_ERROR(pending_.Deliver());
  // An error takes the place of an element, so it counts as a step too.
  const bool end = next.ok() && !next->has_value();
  if (!end && restore_failed_.ok()) ++step_;
  return next;
}

absl::StatusOr<UnfinishedState> RunningDataset::Save() {
  RETURN_IF_ERROR(EnsureRestored());
  const uint64_t save = ++saves_;
  StateHead head = {
      .save = save, .seed = context_.seed, .epoch = context_.repetition, .step = step_};
  {
    MutexLock lock(origin_mu_);
    head.origin = origin_;
  }
  states_->TakeUnfinished();  // drop the sections of a Save() that failed
  ASSIGN_OR_RETURN(std::string position, SaveIterator(*nodes_, dataset_, save));
  return UnfinishedState{head, states_->TakeUnfinished(), std::move(position)};
}

absl::Status RunningDataset::EnsureRestored() {
  RETURN_IF_ERROR(restore_failed_);
  if (skip_steps_ == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t passed, nodes_->Skip(skip_steps_));
  step_ += passed;
  skip_steps_ = 0;
  return absl::OkStatus();
}

absl::Status RunningDataset::Restore(StateToRestore state) {
  const bool all_ranks = state.sections.all_ranks;
  GiveUp();
  states_->TakeUp(std::move(state.sections));
  if (absl::Status status = RestoreNodes(state); !status.ok()) {
    GiveUp();  // some nodes may already be at the state's position
    restore_failed_ = absl::FailedPreconditionError(
        absl::StrCat("the last Restore() failed, so the iterator has no position to read from; "
                     "restore again, or create a new iterator; it failed with ",
                     status.ToString()));
    return status;
  }
  restore_failed_ = absl::OkStatus();
  step_ = state.head.step;
  skip_steps_ = state.options.skip_steps;
  saves_ = std::max(saves_, state.head.save);
  MutexLock lock(origin_mu_);
  if (!all_ranks) restored_ = {state.head.origin, state.head.save};
  return absl::OkStatus();
}

void RunningDataset::GiveUp() {
  ready_ = nullptr;
  nodes_.reset();
  pending_.clear();
  MutexLock lock(origin_mu_);
  origin_ = RandomNumber();
  restored_.reset();
}

absl::Status RunningDataset::RestoreNodes(const StateToRestore& state) {
  context_.seed = state.head.seed;
  if (counts_epochs_) GoOnInEpoch(dataset_, context_.repetition, state.head.epoch);
  context_.repetition = state.head.epoch;
  RETURN_IF_ERROR(Start());
  return RestoreEdited(*nodes_, dataset_, state.position, state.options.allow);
}

absl::Status RunningDataset::Commit(const State& state) {
  StateReader reader(AfterMagic(state));
  ASSIGN_OR_RETURN(const StateHead head, ReadStateHead(reader, state));
  {
    MutexLock lock(origin_mu_);
    if (head.origin != origin_ && restored_ != std::pair(head.origin, head.save)) {
      return absl::FailedPreconditionError(
          "the state does not belong to this iterator: it was saved by a different iterator, or "
          "by this one before its last Restore(); commit it on the iterator that saved it, "
          "or Restore() it first");
    }
  }
  return commits_.Commit(head.save);
}

}  // namespace penstock
