// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/service/cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/clock.h"
#include "control/sync/thread.h"

namespace penstock::simulator {
namespace {

constexpr absl::Duration kEndPoll = absl::Milliseconds(100);
// A worker that drains has a minute for it.
constexpr absl::Duration kEndBound = absl::Minutes(2);

template <class Roles>
void AddRunning(const Roles& roles, const Target& target, const Role* but,
                std::vector<Role*>& running) {
  for (size_t i = 0; i < roles.size(); ++i) {
    Role* const role = roles[i].get();
    const bool admitted =
        !target.number.has_value() || static_cast<size_t>(*target.number) == i + 1;
    if (admitted && role->running() && role != but) running.push_back(role);
  }
}

}  // namespace

void Cluster::Start() {
  dispatcher_.Start();
  for (int i = 0; i < world_.scenario.workers; ++i) Join(RoleKind::kWorker);
  for (int i = 0; i < world_.scenario.trainers; ++i) Join(RoleKind::kTrainer);
}

void Cluster::Join(RoleKind kind) {
  if (kind == RoleKind::kWorker) {
    const std::string name = absl::StrCat("worker", workers_.size() + 1);
    workers_.push_back(std::make_unique<Worker>(world_, name));
    workers_.back()->Start();
  } else {
    const std::string name = absl::StrCat("trainer", trainers_.size() + 1);
    trainers_.push_back(std::make_unique<Trainer>(world_, name));
    trainers_.back()->Start();
  }
}

Role* Cluster::Find(const Target& target, Dice& dice, const Role* but) {
  std::vector<Role*> running;
  if (target.kind == RoleKind::kDispatcher) {
    if (dispatcher_.running() && &dispatcher_ != but) running.push_back(&dispatcher_);
  } else if (target.kind == RoleKind::kWorker) {
    AddRunning(workers_, target, but, running);
  } else {
    AddRunning(trainers_, target, but, running);
  }
  if (running.empty()) return nullptr;
  return running[static_cast<size_t>(dice.Between(0, static_cast<int64_t>(running.size()) - 1))];
}

void Cluster::Mend() {
  ForAll([](Role& role) { role.Continue(); });
  const auto lives = [](const auto& role) { return role->running() || role->starts_again(); };
  if (!dispatcher_.running() && !dispatcher_.starts_again()) {
    dispatcher_.StartAfter(absl::ZeroDuration());
  }
  if (!std::any_of(workers_.begin(), workers_.end(), lives)) Join(RoleKind::kWorker);
  const bool any_ended =
      std::any_of(world_.histories.begin(), world_.histories.end(),
                  [](const History& history) { return history.ended.has_value(); });
  // A trainer that is about to leave reads no more.
  const bool any_lives = std::any_of(trainers_.begin(), trainers_.end(), lives);
  if (!any_lives && !any_ended) Join(RoleKind::kTrainer);
}

bool Cluster::AnyReads() const {
  return std::any_of(trainers_.begin(), trainers_.end(),
                     [](const auto& trainer) { return trainer->busy(); });
}

// The dispatcher ends last, so that the others can say goodbye.
bool Cluster::Stop() {
  ForAll([this](Role& role) {
    role.Retire();
    if (&role != &dispatcher_) role.Tell(Order::kLeave);
  });
  const bool others_ended = AwaitEnd([this](const Role& role) { return &role != &dispatcher_; });
  dispatcher_.Tell(Order::kLeave);
  return AwaitEnd([](const Role&) { return true; }) && others_ended;
}

bool Cluster::CrashAll() {
  ForAll([](Role& role) {
    role.Retire();
    role.Crash();
  });
  return AwaitEnd([](const Role&) { return true; });
}

void Cluster::ForAll(absl::FunctionRef<void(Role&)> visit) {
  for (const auto& trainer : trainers_) visit(*trainer);
  for (const auto& worker : workers_) visit(*worker);
  visit(dispatcher_);
}

bool Cluster::AwaitEnd(absl::FunctionRef<bool(const Role&)> counts) {
  const absl::Time deadline = BootTime() + kEndBound;
  const auto any_left = [&] {
    bool any = false;
    ForAll([&](Role& role) { any |= counts(role) && role.any_left(); });
    return any;
  };
  while (any_left() && BootTime() < deadline) Sleep(kEndPoll);
  return !any_left();
}

}  // namespace penstock::simulator
