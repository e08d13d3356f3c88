// SPDX-License-Identifier: Apache-2.0
// Lets a thread that waits for events of links do the links' work itself.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/event_loop.h"

namespace penstock::transfer {

// The timeout for a wait whose end is always reported with NotifyAll(). The timeout may be long,
// because no notification can be missed.
inline constexpr std::chrono::seconds kMaxWait(1);

// A condition variable for state that links' events change. One of the process's waiting threads at
// a time polls the transports' loops and runs the events of any link. This thread spins briefly
// before it sleeps, unless its last spins found nothing. The other threads sleep until they are
// notified or offered the lead.
class PollingCondition {
 public:
  PollingCondition() = default;
  PollingCondition(const PollingCondition&) = delete;
  PollingCondition& operator=(const PollingCondition&) = delete;

  // Releases `lock` and waits for NotifyAll(), for at most `timeout`. May return earlier. REQUIRES:
  // the caller holds no other lock that an event takes.
  void WaitFor(MutexLock& lock, std::chrono::nanoseconds timeout);
  // Waits for NotifyAll() and leaves the loops to other threads: for a wait that may be long and is
  // not urgent. May return earlier.
  void WaitPassive(MutexLock& lock);
  // Any thread; call it after the change.
  void NotifyAll();

 private:
  friend class Poller;
  void WaitInSimulation(MutexLock& lock, std::chrono::nanoseconds timeout);
  void Sleep(uint64_t seen, EventLoop::Nanoseconds until);
  void OfferLead();

  std::atomic<uint64_t> notified_{0};  // number of NotifyAll() calls
  std::atomic<int> polling_{0};        // threads
  std::atomic<int> sleeping_{0};       // threads

  Mutex mu_;  // acquired while the Poller's lock is held; no lock is acquired under it
  Condition woken_;
  bool lead_offered_ GUARDED_BY(mu_) = false;
};

// Serves all loops once without waiting, unless another thread is serving them. For threads that
// call this function often. REQUIRES: the caller holds no lock that an event takes.
void PollTransports();

// From now on, waiting threads poll the loop until it is removed. Unavailable if no descriptor is
// left.
absl::Status AddPolledLoop(std::shared_ptr<EventLoop> loop);
void RemovePolledLoop(const EventLoop& loop);

}  // namespace penstock::transfer
