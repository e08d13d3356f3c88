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
  for (size_t job = 0; job < world_.jobs.size(); ++job) StartTrainers(job);
}

void Cluster::StartTrainers(size_t job) {
  Consumers* consumers = nullptr;
  if (world_.jobs[job].reading == Reading::kRounds) {
    consumers = consumers_.emplace_back(std::make_unique<Consumers>(world_)).get();
  }
  int64_t number = 0;
  for (const TrainerGroup& group : world_.jobs[job].groups) {
    for (int i = 0; i < group.trainers; ++i) AddTrainer({job, number++, group.step, consumers});
  }
}

Trainer& Cluster::AddTrainer(const Seat& seat) {
  const std::string name = absl::StrCat("trainer", trainers_.size() + 1);
  trainers_.push_back(std::make_unique<Trainer>(world_, name, seat));
  if (seat.consumers != nullptr) seat.consumers->Add(trainers_.back().get());
  trainers_.back()->Start();
  return *trainers_.back();
}

void Cluster::Join(RoleKind kind) {
  if (kind == RoleKind::kWorker) {
    const std::string name = absl::StrCat("worker", workers_.size() + 1);
    workers_.push_back(std::make_unique<Worker>(world_, name));
    workers_.back()->Start();
    return;
  }
  for (size_t i = 0; i < world_.jobs.size(); ++i) {
    const size_t job = joined_++ % world_.jobs.size();
    const JobPlan& plan = world_.jobs[job];
    if (plan.reading == Reading::kRounds || plan.reading == Reading::kOrder) continue;
    AddTrainer({job, 0, plan.groups.front().step, nullptr});
    return;
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
  for (size_t job = 0; job < world_.jobs.size(); ++job) MendJob(job);
}

void Cluster::MendJob(size_t job) {
  const bool needs_all = world_.jobs[job].has_consumers();
  bool any_reads = false;
  for (const auto& trainer : trainers_) {
    if (trainer->job() != job) continue;
    // A trainer that is about to leave reads no more.
    bool reads = trainer->running() || trainer->starts_again() || trainer->finished();
    if (needs_all && !reads) {
      trainer->StartAfter(absl::ZeroDuration());
      reads = true;
    }
    any_reads |= reads;
  }
  if (!any_reads) AddTrainer({job, 0, world_.jobs[job].groups.front().step, nullptr});
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
