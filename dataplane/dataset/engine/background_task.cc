// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/background_task.h"

#include <utility>

#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock {

BackgroundTask::~BackgroundTask() {
  {
    MutexLock lock(mu_);
    leaving_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

absl::Status BackgroundTask::Begin() {
  if (!thread_.joinable()) {
    ASSIGN_OR_RETURN(thread_, StartThread("reading ahead of the caller", [this] { Live(); }));
  }
  {
    MutexLock lock(mu_);
    wanted_ = true;
    over_ = false;
  }
  begun_ = true;
  changed_.NotifyAll();
  return absl::OkStatus();
}

bool BackgroundTask::Await(absl::Duration bound) {
  if (!begun_) return true;
  MutexLock lock(mu_);
  const auto is_over = [this]() REQUIRES(mu_) { return over_; };
  if (!changed_.WaitFor(lock, bound, is_over)) return false;
  begun_ = false;
  return true;
}

void BackgroundTask::Live() {
  MutexLock lock(mu_);
  while (true) {
    changed_.Wait(lock, [this]() REQUIRES(mu_) { return wanted_ || leaving_; });
    if (!wanted_) return;
    wanted_ = false;
    lock.unlock();
    run_();
    lock.lock();
    over_ = true;
    changed_.NotifyAll();
  }
}

}  // namespace penstock
