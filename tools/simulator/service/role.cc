// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/service/role.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "control/sync/clock.h"

namespace penstock::simulator {
namespace {

// The time until a program that ended by itself is started again.
constexpr absl::Duration kRestart = absl::Seconds(1);

}  // namespace

void Life::Tell(Order order) {
  if (order_ == Order::kNone) order_ = order;
  scheduler_.Notify(this, /*all=*/true);
}

void Life::Kill() {
  process_->Kill();
  scheduler_.Notify(this, /*all=*/true);
}

void Life::Finish() {
  finished_ = true;
  scheduler_.Notify(this, /*all=*/true);
}

bool Life::AwaitEnd(absl::Duration time) {
  const absl::Time deadline = BootTime() + time;
  while (!ends() && BootTime() < deadline) scheduler_.Wait(this, deadline);
  return ends();
}

void Life::AwaitKillOrFinish(absl::Duration time) {
  const absl::Time deadline = BootTime() + time;
  while (alive() && !finished_ && BootTime() < deadline) scheduler_.Wait(this, deadline);
}

// Returns whether a process may end with this error because another one was away, or because it was
// away itself, or because the dispatcher's disk was full.
static bool FollowsFromFaults(const World& world, const absl::Status& status) {
  if (world.disk_was_full && absl::IsResourceExhausted(status)) return true;
  return absl::IsUnavailable(status) || absl::IsFailedPrecondition(status) ||
         absl::IsAborted(status) || absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
}

// Returns whether the dispatcher ended a job because it takes one of its elements for the cause of
// its workers' deaths.
static bool IsEndedByDeaths(const World& world, const absl::Status& status) {
  constexpr int64_t kFewestDeaths = 4;  // control/dispatcher/partition_placer.cc
  return world.worker_faults >= kFewestDeaths && absl::IsInternal(status) &&
         absl::StrContains(status.message(), "workers died while they ran it");
}

// Returns whether a trainer was refused because its namespace has as many clients as it may have.
static bool IsRefusedByLimit(const World& world, const absl::Status& status) {
  const auto& namespaces = world.scenario.namespaces;
  return absl::IsResourceExhausted(status) &&
         std::any_of(namespaces.begin(), namespaces.end(),
                     [](const auto& entry) { return entry.second.clients > 0; });
}

void Role::Start() {
  start_due_ = 0;
  ++lives_;
  ++lives_left_;
  life_ = std::make_shared<Life>(world_.scheduler, world_.scheduler.NewProcess(name_, name_));
  // A scenario without skews or drifts draws nothing here.
  if (const Span& skew = world_.scenario.clock_skew; skew.low < skew.high) {
    life_->process()->SetClocks(world_.scheduler.dice().Draw(skew), absl::ZeroDuration());
  }
  if (const Drift& drift = world_.scenario.clock_drift; drift.low_ppm < drift.high_ppm) {
    constexpr int64_t kPpbOfPpm = 1000;
    if (lives_ == 1) {
      drift_ppb_ =
          world_.scheduler.dice().Between(drift.low_ppm * kPpbOfPpm, drift.high_ppm * kPpbOfPpm);
    }
    life_->process()->SetDrift(drift_ppb_);
  }
  world_.Note("start", name_);
  world_.scheduler.StartIn(life_->process(), "main", [this, life = life_] { Run(life); });
}

void Role::Run(const std::shared_ptr<Life>& life) {
  const absl::Status status = Main(*life);
  --lives_left_;
  if (life_ == life) life_ = nullptr;
  world_.Note("over", absl::StrCat(name_, " ", status.ToString()));
  if (!life->alive() || status.ok()) return;
  if (IsEndedByDeaths(world_, status)) {
    world_.ended_by_deaths = true;
    return;
  }
  const bool explained = !world_.scenario.rules.empty() && FollowsFromFaults(world_, status);
  if (!explained && !IsRefusedByLimit(world_, status)) {
    world_.Violates(
        absl::StrCat(name_, " ended by itself, and no fault explains it: ", status.ToString()));
  }
  if (!starts_again()) StartAfter(kRestart);
}

void Role::StartAfter(absl::Duration time) {
  if (retired_) return;
  start_due_ = ++starts_;
  world_.scheduler.At(world_.scheduler.now() + time, world_.director, [this, number = start_due_] {
    if (start_due_ != number) return;
    start_due_ = 0;
    if (life_ == nullptr) return Start();
    if (!running()) StartAfter(kRestart);  // it is about to end
  });
}

void Role::Retire() {
  retired_ = true;
  start_due_ = 0;
}

void Role::Tell(Order order) {
  if (life_ != nullptr) life_->Tell(order);
}

void Role::Crash() {
  if (life_ == nullptr) return;
  world_.Note("crash", name_);
  const std::shared_ptr<Life> life = std::move(life_);
  life_ = nullptr;
  life->Kill();
  world_.network.OnKilled(*life->process());
  OnKilled();
  if (life->process()->paused()) {  // a ghost must run in order to end
    life->process()->Continue();
    world_.scheduler.Continued(*life->process());
  }
}

void Role::Pause() {
  if (life_ == nullptr) return;
  world_.Note("pause", name_);
  life_->process()->Pause();
  world_.network.OnPaused(*life_->process());
}

void Role::Continue() {
  if (life_ == nullptr || !life_->process()->paused()) return;
  world_.Note("continue", name_);
  life_->process()->Continue();
  world_.scheduler.Continued(*life_->process());
}

}  // namespace penstock::simulator
