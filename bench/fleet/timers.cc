// SPDX-License-Identifier: Apache-2.0
#include "bench/fleet/timers.h"

#include <utility>

#include "control/sync/clock.h"
#include "include/status_macros.h"

namespace penstock::bench {

absl::StatusOr<std::unique_ptr<Timers>> Timers::Start() {
  std::unique_ptr<Timers> timers(new Timers);
  ASSIGN_OR_RETURN(timers->thread_,
                   StartThread("the timers of a fleet", [its = timers.get()] { its->Run(); }));
  return timers;
}

Timers::~Timers() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Timers::Schedule(Task& task, absl::Time when) {
  MutexLock lock(mu_);
  Push(task, when);
  changed_.NotifyAll();
}

void Timers::Forget(Task& task) {
  MutexLock lock(mu_);
  changed_.Wait(lock, [&]() REQUIRES(mu_) { return running_ != &task; });
  Remove(task);
}

void Timers::Push(Task& task, absl::Time when) {
  if (when >= task.due_) return;
  Remove(task);
  task.due_ = when;
  queue_.insert({when, &task});
}

void Timers::Remove(Task& task) {
  queue_.erase({task.due_, &task});
  task.due_ = absl::InfiniteFuture();
}

void Timers::Run() {
  MutexLock lock(mu_);
  while (!stopping_) {
    if (queue_.empty()) {
      changed_.Wait(lock);
      continue;
    }
    const auto [when, task] = *queue_.begin();
    const absl::Time now = BootTime();
    if (when > now) {
      changed_.WaitFor(lock, when - now);
      continue;
    }
    Remove(*task);
    running_ = task;
    lock.unlock();
    const absl::Time again = task->Run(now);
    lock.lock();
    running_ = nullptr;
    Push(*task, again);
    changed_.NotifyAll();
  }
}

}  // namespace penstock::bench
