// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/call_queue.h"

#include <utility>

#include "dataplane/transfer/ucx/link.h"

namespace penstock::transfer::ucx {

void CallQueue::Call(const std::shared_ptr<Link>& link) {
  MutexLock lock(mu_);
  if (stopped_ || std::exchange(link->called_, true)) return;
  calls_.Push(link);
  WakeIfAsleep();
}

void CallQueue::RequestStop() {
  MutexLock lock(mu_);
  stopping_ = true;
  WakeIfAsleep();
}

void CallQueue::WakeIfAsleep() {
  if (std::exchange(asleep_, false)) active_.worker->Wake();
}

bool CallQueue::stopped() {
  MutexLock lock(mu_);
  return stopped_;
}

bool CallQueue::stop_requested() {
  MutexLock lock(mu_);
  return stopping_;
}

bool CallQueue::RunCalls() {
  MutexLock lock(mu_);
  const size_t count = calls_.size();
  for (size_t i = 0; i < count; ++i) {
    const std::shared_ptr<Link> link = calls_.Pop();
    link->called_ = false;
    lock.unlock();
    link->OnCall();
    lock.lock();
  }
  return count > 0;
}

bool CallQueue::Sleep(std::chrono::milliseconds at_most) {
  {
    MutexLock lock(mu_);
    if (!calls_.empty() || stopping_) return false;
    asleep_ = true;
  }
  active_.worker->Sleep(static_cast<int>(at_most.count()));
  MutexLock lock(mu_);
  asleep_ = false;
  return true;
}

Fifo<std::shared_ptr<Link>> CallQueue::End() {
  MutexLock lock(mu_);
  stopped_ = true;
  return std::exchange(calls_, {});
}

}  // namespace penstock::transfer::ucx
