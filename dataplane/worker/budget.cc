// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/budget.h"

#include <chrono>

#include "control/sync/mutex.h"

namespace penstock::worker {

void Budget::Subtract(int64_t bytes) {
  const int64_t before = used_.fetch_sub(bytes, std::memory_order_relaxed);
  if (before >= bytes_ && before - bytes < bytes_) Wake();
}

void Budget::Wait(const std::stop_token& stop) {
  if (!exhausted()) return;
  const std::stop_callback wake(stop, [this] { Wake(); });
  MutexLock lock(mu_);
  while (exhausted() && !stop.stop_requested()) freed_.WaitFor(lock, transfer::kMaxWait);
}

void Budget::Wake() {
  // Once the lock has been held here, a thread that was about to wait is either waiting or will see
  // the change.
  { MutexLock lock(mu_); }
  freed_.NotifyAll();
}

}  // namespace penstock::worker
