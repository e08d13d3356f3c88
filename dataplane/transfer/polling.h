// SPDX-License-Identifier: Apache-2.0
// How a thread that waits for what links bring does the links' work itself.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/event_loop.h"

namespace penstock::transfer {

// For waits whose end is always told of with NotifyAll(): nothing is missed.
inline constexpr std::chrono::seconds kMaxWait(1);

// A condition variable for what links' events change. Of all threads of the
// process that wait at one, one at a time polls the transports' loops, and runs
// the events of any link; it spins a moment before it sleeps, unless that found
// nothing of late. The others sleep until they are notified, or offered the lead.
class PollingCondition {
 public:
  PollingCondition() = default;
  PollingCondition(const PollingCondition&) = delete;
  PollingCondition& operator=(const PollingCondition&) = delete;

  // Waits for NotifyAll() without `lock`, at most that long. May return earlier.
  // REQUIRES: no other lock is held that an event takes.
  void WaitFor(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds timeout);
  // Waits for NotifyAll(), and leaves the loops to others: for a wait that may be
  // long, and whose end is in no hurry. May return earlier.
  void WaitPassive(std::unique_lock<std::mutex>& lock);
  // Any thread, behind the change.
  void NotifyAll();

 private:
  friend class Poller;
  void Sleep(uint64_t seen, EventLoop::Nanoseconds until);
  void OfferLead();

  std::atomic<uint64_t> notified_{0};  // how often
  std::atomic<int> polling_{0};        // threads
  std::atomic<int> sleeping_{0};       // threads

  Mutex mu_;  // taken while Poller's is held; no other is taken while it is
  std::condition_variable woken_;
  bool lead_offered_ GUARDED_BY(mu_) = false;
};

// Serves all loops once, without waiting, unless another thread is at it. For a
// thread that calls this often. REQUIRES: no lock is held that an event takes.
void PollTransports();

// From here on threads that wait poll this loop, until it is removed.
// Unavailable without a descriptor.
absl::Status AddPolledLoop(std::shared_ptr<EventLoop> loop);
void RemovePolledLoop(const EventLoop& loop);

}  // namespace penstock::transfer
