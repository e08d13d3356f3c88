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

// `number`: of the only role that is admitted, counted from 1; nullopt: all are.
template <class Roles>
void AddRunning(const Roles& roles, std::optional<int> number, const Role* but,
                std::vector<Role*>& running) {
  for (size_t i = 0; i < roles.size(); ++i) {
    Role* const role = roles[i].get();
    const bool admitted = !number.has_value() || static_cast<size_t>(*number) == i + 1;
    if (admitted && role->running() && role != but) running.push_back(role);
  }
}

}  // namespace

Cluster::Cluster(World& world) : world_(world) {
  for (int i = 1; i <= world.scenario.dispatchers; ++i) {
    dispatchers_.push_back(std::make_unique<Dispatcher>(world, i));
  }
  if (dispatchers_.size() == 1) return;
  etcd_ = std::make_unique<EtcdHost>(world);
  for (const auto& dispatcher : dispatchers_) world.network.pinged.insert(dispatcher->name());
  world.network.pinged.insert(etcd_->name());
}

void Cluster::Start() {
  if (etcd_ != nullptr) etcd_->Start();
  for (const auto& dispatcher : dispatchers_) dispatcher->Start();
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
  switch (target.kind) {
    case RoleKind::kDispatcher:
      AddRunning(dispatchers_, target.number.has_value() ? target.number : Leader(), but, running);
      break;
    case RoleKind::kWorker:
      AddRunning(workers_, target.number, but, running);
      break;
    case RoleKind::kTrainer:
      AddRunning(trainers_, target.number, but, running);
      break;
    case RoleKind::kEtcd:
      if (etcd_ != nullptr && etcd_->running() && etcd_.get() != but) {
        running.push_back(etcd_.get());
      }
      break;
  }
  if (running.empty()) return nullptr;
  return running[static_cast<size_t>(dice.Between(0, static_cast<int64_t>(running.size()) - 1))];
}

std::optional<int> Cluster::Leader() const {
  std::optional<int> leader;
  uint64_t term = 0;
  for (size_t i = 0; i < dispatchers_.size(); ++i) {
    if (!dispatchers_[i]->running() || dispatchers_[i]->term() <= term) continue;
    term = dispatchers_[i]->term();
    leader = static_cast<int>(i) + 1;
  }
  return leader;
}

void Cluster::FillDisk() {
  world_.disk_was_full = true;
  ++fills_;
  SetFull(true);
}

void Cluster::FreeDisk() {
  if (--fills_ == 0) SetFull(false);
}

void Cluster::SetFull(bool full) {
  Dispatcher& first = *dispatchers_.front();
  world_.Note(full ? "full" : "free", etcd_ != nullptr ? etcd_->name() : first.name());
  if (etcd_ != nullptr) return etcd_->SetFull(full);
  first.SetFull(full);
}

void Cluster::Mend() {
  ForAll([](Role& role) { role.Continue(); });
  const auto lives = [](const auto& role) { return role->running() || role->starts_again(); };
  const auto start = [](Role& role) {
    if (!role.running() && !role.starts_again()) role.StartAfter(absl::ZeroDuration());
  };
  if (etcd_ != nullptr) start(*etcd_);
  for (const auto& dispatcher : dispatchers_) start(*dispatcher);
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

int Cluster::EndOf(const Role& role) const {
  if (&role == etcd_.get()) return 3;
  return std::any_of(dispatchers_.begin(), dispatchers_.end(),
                     [&](const auto& dispatcher) { return dispatcher.get() == &role; })
             ? 2
             : 1;
}

// The dispatchers end after the others, so that these can say goodbye, and etcd ends last.
bool Cluster::Stop() {
  ForAll([](Role& role) { role.Retire(); });
  bool ended = true;
  for (const int last : {1, 2, 3}) {
    ForAll([&](Role& role) {
      if (EndOf(role) == last) role.Tell(Order::kLeave);
    });
    ended &= AwaitEnd([&](const Role& role) { return EndOf(role) <= last; });
  }
  return ended;
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
  for (const auto& dispatcher : dispatchers_) visit(*dispatcher);
  if (etcd_ != nullptr) visit(*etcd_);
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
