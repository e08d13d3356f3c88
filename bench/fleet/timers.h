// SPDX-License-Identifier: Apache-2.0
// Runs the tasks of thousands of peers on one thread, each when it is due.
#pragma once

#include <memory>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"

namespace penstock::bench {

// Any thread may call any method.
class Timers {
 public:
  class Task {
   public:
    virtual ~Task() = default;
    // Called on the thread of the Timers. Returns when to call it again (BootTime());
    // InfiniteFuture: not before the next Schedule().
    virtual absl::Time Run(absl::Time now) = 0;

   private:
    friend class Timers;
    absl::Time due_ = absl::InfiniteFuture();  // guarded by Timers::mu_
  };

  static absl::StatusOr<std::unique_ptr<Timers>> Start();
  ~Timers();  // no task runs afterwards
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;

  // Runs the task at `when`, or earlier if it is already due earlier.
  void Schedule(Task& task, absl::Time when);
  // After this call, the task is not running and is not run. Call it before the task is destroyed,
  // once nothing schedules the task. Must not be called by a task.
  void Forget(Task& task);

 private:
  Timers() = default;
  void Run();
  void Push(Task& task, absl::Time when) REQUIRES(mu_);
  void Remove(Task& task) REQUIRES(mu_);

  Mutex mu_;
  Condition changed_;
  bool stopping_ GUARDED_BY(mu_) = false;
  std::set<std::pair<absl::Time, Task*>> queue_ GUARDED_BY(mu_);  // by due_, each task once
  const Task* running_ GUARDED_BY(mu_) = nullptr;
  Thread thread_;
};

}  // namespace penstock::bench
