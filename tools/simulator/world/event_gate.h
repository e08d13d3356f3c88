// SPDX-License-Identifier: Apache-2.0
// Lets the events of one end of a link run one at a time, and stops them permanently. Like
// dataplane/transfer/gate.h, but its waits are those of fibers.
#pragma once

#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"

namespace penstock::simulator {

class EventGate {
 public:
  // Waits while another event runs. Returns false if the gate is closed; the event must then not
  // run. REQUIRES: the caller is not inside an event.
  bool Enter() {
    MutexLock lock(mu_);
    left_.Wait(lock, [this]() REQUIRES(mu_) { return closed_ || inside_ == ThreadId(); });
    if (closed_) return false;
    inside_ = CurrentThread();
    return true;
  }
  void Leave() {
    {
      MutexLock lock(mu_);
      inside_ = ThreadId();
    }
    left_.NotifyAll();
  }
  // No event begins after this call. Waits for a running event, unless it is called from within
  // that event.
  void Close() {
    MutexLock lock(mu_);
    closed_ = true;
    left_.Wait(lock, [this]() REQUIRES(mu_) {
      return inside_ == ThreadId() || inside_ == CurrentThread();
    });
  }

 private:
  Mutex mu_;
  Condition left_;
  bool closed_ GUARDED_BY(mu_) = false;
  ThreadId inside_ GUARDED_BY(mu_);  // none: no event runs
};

}  // namespace penstock::simulator
