// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/service/trainer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"
#include "penstock/step_token.h"
#include "tools/simulator/service/dataset.h"

namespace penstock::simulator {
namespace {

// The time that a trainer that shall leave has to finish its step and to save.
constexpr absl::Duration kLastStep = absl::Seconds(5);
constexpr absl::Duration kIteratorStopBound = absl::Seconds(10);
// Longer than any fault, so that reading does not fail because of one.
constexpr absl::Duration kServiceTimeout = absl::Minutes(30);
constexpr absl::Duration kPauseBeforeRetry = absl::Seconds(1);
constexpr absl::Duration kBarrierPoll = absl::Milliseconds(50);
constexpr Span kStoreTime = {absl::Milliseconds(1), absl::Milliseconds(50)};

}  // namespace

int64_t OrderPartitions(const JobPlan& plan) {
  return 2 * std::max(plan.trainers(), 2);
}

bool Trainer::HasStored(size_t step) const {
  return std::any_of(stored_.begin(), stored_.end(),
                     [step](const Stored& stored) { return stored.elements == step; });
}

std::vector<size_t> Trainer::StoredSteps() const {
  std::vector<size_t> steps;
  for (const Stored& stored : stored_) steps.push_back(stored.elements);
  return steps;
}

DeliveryMode Trainer::Delivery() const {
  const int64_t trainers = plan().trainers();
  switch (plan().reading) {
    case Reading::kAny:
      return FirstComeFirstServed();
    case Reading::kFair:
      return FirstComeFirstServed{.fair = true};
    case Reading::kRounds:
      return CoordinatedRounds{.consumer_index = seat_.consumer, .num_consumers = trainers};
    case Reading::kOrder:
      return DeterministicOrder{.partitions = OrderPartitions(plan()),
                                .consumer_index = seat_.consumer,
                                .num_consumers = plan().has_consumers() ? trainers : 0};
    case Reading::kCache:
      return CrossTrainerCache{.trainer_id = name()};
  }
  return FirstComeFirstServed();
}

// Each life makes its own, because the readers of one Dataset share passes within a process.
Dataset Trainer::MakeDataset() const {
  Dataset dataset = DatasetOf(plan(), world().scenario.map);
  DistributeOptions options;
  options.processing_mode = plan().mode;
  options.service = world().service;
  if (plan().named) {
    options.job_name = in_rounds() ? seat_.consumers->JobName(plan()) : plan().name;
  }
  options.name_space = plan().name_space;
  options.data_transfer_protocol = "sim";
  options.ack_mode = plan().ack;
  options.delivery = Delivery();
  options.share = plan().share;
  options.quota.max_permits = plan().permits;
  options.max_outstanding_requests = plan().outstanding;
  options.timeout = kServiceTimeout;
  options.seed = world().seed;
  dataset = dataset.Distribute(options);
  return plan().repetitions > 1 ? dataset.Repeat(plan().repetitions) : dataset;
}

absl::Status Trainer::Main(Life& life) {
  if (!life.alive()) return absl::OkStatus();  // killed before it began
  BeginHistory(life);
  const Dataset dataset = MakeDataset();
  ASSIGN_OR_RETURN(Iterator iterator, dataset.MakeIterator({.seed = world().seed}));
  if (!stored_.empty()) RETURN_IF_ERROR(iterator.Restore(stored_.back().state));
  ASSIGN_OR_RETURN(
      Thread signals, StartThread("signals", [&] {
        life.AwaitEnd();
        life.AwaitKillOrFinish(kLastStep);
        if (life.finished()) return;
        iterator.Stop(life.alive() ? kIteratorStopBound : absl::ZeroDuration()).IgnoreError();
      }));
  absl::Status status = Read(life, iterator);
  if (life.alive()) ForgetRefused(status);
  life.Finish();
  signals.join();
  iterator.Stop(life.alive() ? kIteratorStopBound : absl::ZeroDuration()).IgnoreError();
  if (life.alive()) NoteGone();
  return status;
}

absl::Status Trainer::Read(Life& life, Iterator& iterator) {
  int64_t unsaved = 0;
  while (!life.ends()) {
    const absl::StatusOr<std::optional<Element>> next = iterator.Next();
    if (!life.alive() || (life.ends() && absl::IsCancelled(next.status()))) {
      return absl::OkStatus();
    }
    if (absl::IsUnavailable(next.status())) continue;  // the next call waits again
    RETURN_IF_ERROR(next.status());
    if (!next->has_value()) return FinishReading(life, iterator);
    Record(**next);
    if (HasEnough()) return FinishReading(life, iterator);
    if (commits() && ++unsaved >= world().scenario.save_every) {
      const absl::Status saved = Save(life, iterator);
      if (saved.ok()) unsaved = 0;
      if (!saved.ok() && in_rounds()) return saved;
      if (!saved.ok() && world().scenario.rules.empty()) {
        world().Violates(absl::StrCat(name(), " cannot save: ", saved.ToString()));
      }
    }
    life.AwaitEnd(dice_.Draw(seat_.step));
  }
  if (commits() && !in_rounds() && life.alive()) Save(life, iterator).IgnoreError();
  return absl::OkStatus();
}

bool Trainer::HasEnough() const {
  return plan().reading == Reading::kCache &&
         static_cast<int64_t>(history_->got.size()) >= plan().elements;
}

void Trainer::Record(const Element& element) {
  const Identity its = element.identity();
  const StepToken step = StepTokenOf(element);
  const auto value = element.tensor(0).scalar<int64_t>();
  Got& got = history_->got.emplace_back();
  got.key = {its.iteration, its.partition, its.index};
  got.value = value;
  got.when = world().now();
  got.record = world().shadow.sequence();
  got.placement = its.placement;
  got.round = step.round;
  got.consumer = step.consumer;
  got.pad = step.pad;
  world().scheduler.trace().Add(world().scheduler.now(), "got", process()->number(),
                                static_cast<uint64_t>(value));
}

absl::Status Trainer::Save(Life& life, Iterator& iterator) {
  if (in_rounds()) return SaveTogether(life, iterator);
  RETURN_IF_ERROR(Store(life, iterator));
  return Commit(life, iterator);
}

absl::Status Trainer::Store(Life& life, Iterator& iterator) {
  ASSIGN_OR_RETURN(State state, iterator.Save());
  const size_t elements = history_->got.size();
  Sleep(dice_.Draw(kStoreTime));
  if (!life.alive()) return absl::CancelledError("killed");
  stored_.push_back({std::move(state), elements});
  NoteStates();
  return absl::OkStatus();
}

// The step must be the same for all, so this waits for the dispatcher and for the others.
absl::Status Trainer::SaveTogether(Life& life, Iterator& iterator) {
  const auto try_again = [&](absl::Status done) -> absl::StatusOr<bool> {
    if (!done.ok() && absl::IsFailedPrecondition(done)) return done;
    return !done.ok() && !life.AwaitEnd(kPauseBeforeRetry);
  };
  const size_t step = history_->got.size();
  bool again = !HasStored(step);
  while (again) {
    ASSIGN_OR_RETURN(again, try_again(Store(life, iterator)));
  }
  while (!seat_.consumers->AllStored(step)) {
    if (life.AwaitEnd(kBarrierPoll)) return absl::CancelledError("told to end");
  }
  again = true;
  while (again) {
    ASSIGN_OR_RETURN(again, try_again(Commit(life, iterator)));
  }
  return life.ends() ? absl::CancelledError("told to end") : absl::OkStatus();
}

absl::Status Trainer::Commit(Life& life, Iterator& iterator) {
  RETURN_IF_ERROR(iterator.Commit(stored_.back().state));
  if (!life.alive()) return absl::CancelledError("killed");
  stored_.erase(stored_.begin(), std::prev(stored_.end()));
  before_restored_ = 0;
  stored_.back().committed = true;
  NoteStates();
  return absl::OkStatus();
}

// The dispatcher refuses states that were not committed if it has given the trainer up meanwhile.
// There may be several: each life that reads on from one stores another. Those before the one that
// this life restored stay: an earlier life may have restored one of them, and so have committed it.
void Trainer::ForgetRefused(const absl::Status& failure) {
  const bool refused =
      absl::StrContains(failure.message(), "were never committed") ||
      absl::StrContains(failure.message(), "is not the last one that it committed");
  if (!refused) return;
  while (stored_.size() > before_restored_ && !stored_.back().committed) stored_.pop_back();
  NoteStates();
}

absl::Status Trainer::FinishReading(Life& life, Iterator& iterator) {
  while (commits()) {
    const absl::Status saved = Save(life, iterator);
    if (saved.ok()) break;
    if (life.ends()) return absl::OkStatus();
    if (absl::IsFailedPrecondition(saved)) return saved;  // the next life commits it
    life.AwaitEnd(kPauseBeforeRetry);
  }
  if (life.alive()) history_->ended = world().now();
  return absl::OkStatus();
}

// --- The history -------------------------------------------------------------------

void Trainer::BeginHistory(const Life& life) {
  if (in_rounds()) {
    const size_t common = seat_.consumers->CommonStep();
    while (!stored_.empty() && stored_.back().elements > common) stored_.pop_back();
    if (common == 0) stored_.clear();
  }
  before_restored_ = stored_.empty() ? 0 : stored_.size() - 1;
  if (stored_.empty()) {
    history_ = &world().histories.emplace_back();
    history_->name = absl::StrCat(name(), ", life ", lives());
    history_->job = seat_.job;
  } else {
    history_->ContinueFrom(stored_.back().elements);
  }
  NoteStates();
  world().readers[life.process()->number()] = history_;
}

void Trainer::NoteStates() {
  history_->states.clear();
  for (const Stored& stored : stored_) {
    history_->states.push_back(stored.elements);
    if (stored.committed) history_->committed = stored.elements;
  }
}

void Trainer::GiveUpHistory() {
  if (history_ == nullptr) return;
  history_->ended.reset();
  history_->gone = world().now();
}

void Trainer::OnKilled() {
  NoteGone();
}

void Trainer::NoteGone() {
  if (finished()) return;
  if (history_ != nullptr) history_->gone = world().now();
  if (in_rounds()) seat_.consumers->OnGone();
}

}  // namespace penstock::simulator
