// SPDX-License-Identifier: Apache-2.0
// Work on a thread of its own for another that may stop waiting for it.
#pragma once

#include <condition_variable>
#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/sync/mutex.h"

namespace penstock {

// Runs one function whenever it is asked to, on a thread that lasts from the first
// time on. Begin() and Await() are for one thread at a time.
class BackgroundTask {
 public:
  explicit BackgroundTask(std::function<void()> run) : run_(std::move(run)) {}
  ~BackgroundTask();  // waits for what runs
  BackgroundTask(const BackgroundTask&) = delete;

  // Begins a run; ResourceExhausted where the process gets no thread for it. REQUIRES: none is
  // under way.
  absl::Status Begin();
  // Between Begin() and the Await() that returned true.
  bool under_way() const { return begun_; }
  // Whether the run was over before `deadline`. True without one.
  bool Await(absl::Time deadline);

 private:
  void Live();

  const std::function<void()> run_;
  bool begun_ = false;  // of who calls
  Mutex mu_;
  std::condition_variable changed_;
  bool wanted_ GUARDED_BY(mu_) = false;
  bool over_ GUARDED_BY(mu_) = false;
  bool leaving_ GUARDED_BY(mu_) = false;
  std::thread thread_;  // begun by the first Begin()
};

}  // namespace penstock
