// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/service/trainer.h"

#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock::simulator {
namespace {

// The time that a trainer that shall leave has to finish its step and to save.
constexpr absl::Duration kLastStep = absl::Seconds(5);
constexpr absl::Duration kIteratorStopBound = absl::Seconds(10);
// Longer than any fault, so that reading does not fail because of one.
constexpr absl::Duration kServiceTimeout = absl::Minutes(30);
constexpr absl::Duration kPauseBeforeRetry = absl::Seconds(1);
constexpr Span kStoreTime = {absl::Milliseconds(1), absl::Milliseconds(50)};

}  // namespace

int64_t ElementValue(const Scenario& scenario, int64_t index) {
  return scenario.map ? index * 3 + 1 : index;
}

// Each life makes its own, because the readers of one Dataset share passes within a process.
Dataset Trainer::MakeDataset() const {
  const Scenario& scenario = world().scenario;
  Dataset dataset = Dataset::Range(scenario.elements);
  if (scenario.map) {
    dataset = dataset.Map([](const Expr& x) { return x * 3 + 1; }, {.num_parallel_calls = 1});
  }
  DistributeOptions options;
  options.processing_mode = ShardingPolicy::kDynamic;
  options.service = kService;
  options.job_name = "train";
  options.data_transfer_protocol = "sim";
  options.ack_mode = scenario.ack;
  options.timeout = kServiceTimeout;
  options.seed = world().seed;
  return dataset.Distribute(options);
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
    if (commits() && ++unsaved >= world().scenario.save_every) {
      const absl::Status saved = SaveAndCommit(life, iterator);
      if (saved.ok()) unsaved = 0;
      if (!saved.ok() && world().scenario.rules.empty()) {
        world().Violates(absl::StrCat(name(), " cannot save: ", saved.ToString()));
      }
    }
    life.AwaitEnd(dice_.Draw(world().scenario.step));
  }
  if (commits() && life.alive()) SaveAndCommit(life, iterator).IgnoreError();
  return absl::OkStatus();
}

void Trainer::Record(const Element& element) {
  const Identity its = element.identity();
  const auto value = element.tensor(0).scalar<int64_t>();
  history_->got.push_back(
      {{its.iteration, its.partition, its.index}, value, world().now(), world().shadow.sequence()});
  world().scheduler.trace().Add(world().scheduler.now(), "got", process()->number(),
                                static_cast<uint64_t>(value));
}

absl::Status Trainer::SaveAndCommit(Life& life, Iterator& iterator) {
  ASSIGN_OR_RETURN(State state, iterator.Save());
  const size_t elements = history_->got.size();
  Sleep(dice_.Draw(kStoreTime));
  if (!life.alive()) return absl::CancelledError("killed");
  stored_.push_back({state, elements});
  NoteStates();
  RETURN_IF_ERROR(iterator.Commit(state));
  if (!life.alive()) return absl::CancelledError("killed");
  stored_.erase(stored_.begin(), std::prev(stored_.end()));
  stored_.back().committed = true;
  NoteStates();
  return absl::OkStatus();
}

// The dispatcher refuses a state that was not committed if it has given the trainer up meanwhile.
void Trainer::ForgetRefused(const absl::Status& failure) {
  const bool refused =
      absl::StrContains(failure.message(), "were never committed") ||
      absl::StrContains(failure.message(), "is not the last one that it committed");
  if (!refused || stored_.empty() || stored_.back().committed) return;
  stored_.pop_back();
  NoteStates();
}

absl::Status Trainer::FinishReading(Life& life, Iterator& iterator) {
  while (commits()) {
    const absl::Status saved = SaveAndCommit(life, iterator);
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
  if (stored_.empty()) {
    history_ = &world().histories.emplace_back();
    history_->name = absl::StrCat(name(), ", life ", lives());
  } else {
    history_->ContinueFrom(stored_.back().elements);
  }
  world().readers[life.process()->number()] = history_;
}

void Trainer::NoteStates() {
  history_->states.clear();
  for (const Stored& stored : stored_) {
    history_->states.push_back(stored.elements);
    if (stored.committed) history_->committed = stored.elements;
  }
}

void Trainer::OnKilled() {
  NoteGone();
}

void Trainer::NoteGone() {
  if (history_ != nullptr && !history_->ended.has_value()) history_->gone = world().now();
}

}  // namespace penstock::simulator
