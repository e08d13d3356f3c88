// SPDX-License-Identifier: Apache-2.0
// How other threads reach an engine's thread: they queue links for that thread to call, or request
// its end, and wake it if it sleeps.
#pragma once

#include <chrono>
#include <memory>

#include "control/sync/mutex.h"
#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/ucx/active_worker.h"

namespace penstock::transfer::ucx {

class Link;

class CallQueue {
 public:
  explicit CallQueue(ActiveWorker& active) : active_(active) {}

  // Any thread:
  void Call(const std::shared_ptr<Link>& link);
  void RequestStop();
  bool stopped();

  // On the engine's thread:
  bool stop_requested();
  // Calls OnCall() of the queued links; returns false if there were none.
  bool RunCalls();
  // Sleeps in UCX; returns false immediately if a link waits or if the end was requested.
  bool Sleep(std::chrono::milliseconds at_most);
  // Takes no more calls. Returns the links that were not called.
  Fifo<std::shared_ptr<Link>> End();

 private:
  friend class Link;  // for the lock of a flag

  void WakeIfAsleep() REQUIRES(mu_);

  ActiveWorker& active_;

  Mutex mu_;
  Fifo<std::shared_ptr<Link>> calls_ GUARDED_BY(mu_);
  bool asleep_ GUARDED_BY(mu_) = false;
  bool stopping_ GUARDED_BY(mu_) = false;
  bool stopped_ GUARDED_BY(mu_) = false;
};

}  // namespace penstock::transfer::ucx
