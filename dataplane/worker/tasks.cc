// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/tasks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "dataplane/worker/iteration_sender.h"
#include "dataplane/worker/shared_window.h"

namespace penstock::worker {
namespace {

absl::StatusOr<std::shared_ptr<IterationSink>> OpenSink(const control::Assign& assign,
                                                        const WorkerContext& context) {
  if (assign.terms.cross_trainer_cache)
    return SharedWindow::Start(assign.of.iteration, assign.token, context.window_bytes,
                               context.shared_slots);
  return std::make_shared<IterationSender>(assign.of.iteration, assign.token, context.budget,
                                           context.shared_slots);
}

}  // namespace

Tasks::~Tasks() {
  Stop(absl::InfinitePast()).IgnoreError();
}

void Tasks::Do(const control::Assign& assign) {
  std::shared_ptr<PartitionRunner> same;
  std::shared_ptr<IterationSink> namesake;
  absl::Status opened;
  {
    MutexLock lock(mu_);
    if (stopped_) return;
    ForgetIdleLocked();
    Iteration& iteration = iterations_[assign.of.iteration];
    if (iteration.sink != nullptr && iteration.token != assign.token) {
      for (auto& [partition, runner] : iteration.runners) RetireLocked(std::move(runner));
      iteration.runners.clear();
      namesake = std::move(iteration.sink);
    }
    if (iteration.sink == nullptr) {
      iteration.token = assign.token;
      absl::StatusOr<std::shared_ptr<IterationSink>> sink = OpenSink(assign, *context_);
      opened = sink.status();
      if (sink.ok()) iteration.sink = *std::move(sink);
    }
    if (opened.ok()) {
      std::shared_ptr<PartitionRunner>& runner = iteration.runners[assign.of.partition];
      if (runner != nullptr && runner->of().placement > assign.of.placement) return;
      if (runner != nullptr && runner->of().placement == assign.of.placement) {
        same = runner;
      } else {
        if (runner != nullptr) RetireLocked(std::move(runner));
        runner = PartitionRunner::Start(context_, iteration.sink, assign);
      }
    } else {
      iterations_.erase(assign.of.iteration);
    }
  }
  if (!opened.ok()) context_->Say(control::PartitionFailed{assign.of, opened});
  if (namesake != nullptr) {
    namesake->CloseLinks(absl::UnavailableError(
        absl::StrCat("the dispatcher that placed ", ToString(assign.of.iteration),
                     " here is gone; a different dispatcher gave its number to a different job")));
  }
  if (same == nullptr) return;
  for (const control::Reader& reader : assign.readers) same->AddReader(reader);
  same->Allow({assign.of, assign.rows, assign.remainder});
}

void Tasks::Do(const control::AddReader& order) {
  if (auto runner = Find(order.of)) runner->AddReader(order.reader);
}

void Tasks::Do(const control::RemoveReader& order) {
  if (auto runner = Find(order.of)) runner->RemoveReader(order.client);
}

void Tasks::Do(const control::Splits& answer) {
  if (auto runner = Find(answer.of)) runner->OnSplits(answer.run);
}

void Tasks::Do(const control::AllowRows& order) {
  if (auto runner = Find(order.of)) runner->Allow(order);
}

void Tasks::Do(const control::Unassign& order) {
  MutexLock lock(mu_);
  auto iteration = iterations_.find(order.of.iteration);
  if (iteration == iterations_.end()) return;
  auto runner = iteration->second.runners.find(order.of.partition);
  if (runner == iteration->second.runners.end()) return;
  if (runner->second->of().placement > order.of.placement) return;
  RetireLocked(std::move(runner->second));
  iteration->second.runners.erase(runner);
  ForgetIdleLocked();
}

void Tasks::SayAgain() {
  Runners runners;
  {
    MutexLock lock(mu_);
    for (const auto& [id, iteration] : iterations_)
      for (const auto& [partition, runner] : iteration.runners) runners.push_back(runner);
  }
  for (const auto& runner : runners) runner->SayAgain();
}

void Tasks::Drop(const absl::Status& reason) {
  std::vector<std::shared_ptr<IterationSink>> sinks;
  {
    MutexLock lock(mu_);
    sinks = RetireAllLocked();
  }
  for (const auto& sink : sinks) sink->CloseLinks(reason);
}

absl::StatusOr<std::shared_ptr<transfer::SendEvents>> Tasks::Accept(
    const transfer::Hello& hello, std::shared_ptr<transfer::SendLink> link) {
  std::shared_ptr<IterationSink> sink;
  {
    MutexLock lock(mu_);
    auto found = iterations_.find(hello.iteration);
    if (found != iterations_.end()) sink = found->second.sink;
  }
  if (sink == nullptr) {
    return absl::UnavailableError(absl::StrCat("no partition of ", ToString(hello.iteration),
                                               " is placed on this worker; try again"));
  }
  return sink->Accept(hello, std::move(link));
}

void Tasks::ForgetIdle() {
  MutexLock lock(mu_);
  ForgetDoneLocked();
  ForgetIdleLocked();
}

std::vector<control::PlacedPartition> Tasks::held() const {
  MutexLock lock(mu_);
  std::vector<control::PlacedPartition> all;
  for (const auto& [id, iteration] : iterations_)
    for (const auto& [partition, runner] : iteration.runners) all.push_back(runner->of());
  return all;
}

std::vector<control::IterationWork> Tasks::Work() const {
  MutexLock lock(mu_);
  std::vector<control::IterationWork> all;
  for (const auto& [id, iteration] : iterations_) {
    control::IterationWork sum{.iteration = id};
    for (const auto& [partition, runner] : iteration.runners) {
      const control::IterationWork work = runner->Work();
      sum.elements += work.elements;
      sum.busy += work.busy;
      sum.partitions += work.partitions;
    }
    all.push_back(sum);
  }
  return all;
}

int Tasks::size() const {
  MutexLock lock(mu_);
  size_t size = 0;
  for (const auto& [id, iteration] : iterations_) size += iteration.runners.size();
  return static_cast<int>(size);
}

absl::Status Tasks::Stop(absl::Time deadline) {
  Runners runners;
  std::vector<std::shared_ptr<IterationSink>> sinks;
  {
    MutexLock lock(mu_);
    stopped_ = true;
    sinks = RetireAllLocked();
    runners = std::move(retired_);
  }
  for (const auto& sink : sinks) sink->CloseLinks(absl::UnavailableError("the worker stopped"));
  int64_t running = 0;
  for (const auto& runner : runners) running += runner->AwaitDone(deadline) ? 0 : 1;
  if (running == 0) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat(running, " partitions are still running a function of their dataset"));
}

std::shared_ptr<PartitionRunner> Tasks::Find(const control::PlacedPartition& of) const {
  MutexLock lock(mu_);
  auto iteration = iterations_.find(of.iteration);
  if (iteration == iterations_.end()) return nullptr;
  auto runner = iteration->second.runners.find(of.partition);
  if (runner == iteration->second.runners.end() || runner->second->of() != of) return nullptr;
  return runner->second;
}

void Tasks::RetireLocked(std::shared_ptr<PartitionRunner> runner) {
  runner->Cancel();
  ForgetDoneLocked();
  retired_.push_back(std::move(runner));
}

std::vector<std::shared_ptr<IterationSink>> Tasks::RetireAllLocked() {
  std::vector<std::shared_ptr<IterationSink>> sinks;
  for (auto& [id, iteration] : iterations_) {
    for (auto& [partition, runner] : iteration.runners) RetireLocked(std::move(runner));
    sinks.push_back(std::move(iteration.sink));
  }
  iterations_.clear();
  return sinks;
}

void Tasks::ForgetDoneLocked() {
  std::erase_if(retired_, [](const auto& old) { return old->AwaitDone(absl::InfinitePast()); });
}

void Tasks::ForgetIdleLocked() {
  std::erase_if(iterations_, [](const auto& entry) {
    const Iteration& iteration = entry.second;
    return iteration.runners.empty() && iteration.sink->RetireIfIdle();
  });
}

}  // namespace penstock::worker
