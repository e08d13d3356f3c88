// SPDX-License-Identifier: Apache-2.0
// Runs work on another thread, for a caller that may stop waiting for the result.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"

#pragma GCC visibility push(default)
namespace penstock {

// Runs one function, once for each Begin(), on a thread that the first Begin() starts and the
// destructor joins. Only one thread at a time may call Begin() and Await().
class BackgroundTask {
 public:
  explicit BackgroundTask(std::function<void()> run) : run_(std::move(run)) {}
  ~BackgroundTask();  // waits for the current run
  BackgroundTask(const BackgroundTask&) = delete;

  // Begins a run. ResourceExhausted if the process cannot start the thread. REQUIRES: no run is
  // under way.
  absl::Status Begin();
  // True from Begin() until an Await() returns true.
  bool under_way() const { return begun_; }
  // Waits at most `bound` for the run to end; returns whether the run has ended. True if no run is
  // under way.
  bool Await(absl::Duration bound);

 private:
  void Live();

  const std::function<void()> run_;
  bool begun_ = false;  // used by the calling thread only
  Mutex mu_;
  Condition changed_;
  bool wanted_ GUARDED_BY(mu_) = false;
  bool over_ GUARDED_BY(mu_) = false;
  bool leaving_ GUARDED_BY(mu_) = false;
  Thread thread_;  // started by the first Begin()
};

}  // namespace penstock
#pragma GCC visibility pop
