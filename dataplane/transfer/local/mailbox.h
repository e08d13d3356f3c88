// SPDX-License-Identifier: Apache-2.0
// Runs events in order, one at a time, without a thread of their own. The thread that posts an
// event also runs it, unless another thread is running events; in that case, the other thread runs
// the new event too. An event may therefore cause events on the other side, which may in turn cause
// events on this side, without nesting or locking.
#pragma once

#include <functional>
#include <utility>

#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "dataplane/transfer/fifo.h"

namespace penstock::transfer::local {

// Thread-safe. Event is default-constructible and movable.
template <class Event>
class Mailbox {
 public:
  // Nothing runs before Start().
  explicit Mailbox(std::function<void(Event&)> handle) : handle_(std::move(handle)) {}

  void Start() {
    MutexLock lock(mu_);
    started_ = true;
    Run();
  }

  // Returns false after Close(); `event` is then unchanged.
  bool Post(Event&& event) {
    MutexLock lock(mu_);
    if (closed_) return false;
    waiting_.Push(std::move(event));
    Run();
    return true;
  }

  // No event begins after this call. Waits for a running event, unless called from within that
  // event. Returns the events that never ran.
  Fifo<Event> Close() {
    MutexLock lock(mu_);
    closed_ = true;
    idle_.Wait(lock, [&]() REQUIRES(mu_) { return !running_ || runner_ == CurrentThread(); });
    return std::exchange(waiting_, Fifo<Event>());
  }

 private:
  // Releases the lock around each event.
  void Run() REQUIRES(mu_) {
    if (!started_ || running_) return;
    running_ = true;
    runner_ = CurrentThread();
    while (!waiting_.empty() && !closed_) {
      Event event = waiting_.Pop();
      mu_.unlock();
      handle_(event);
      mu_.lock();
    }
    running_ = false;
    idle_.NotifyAll();
  }

  const std::function<void(Event&)> handle_;
  Mutex mu_;
  Condition idle_;
  Fifo<Event> waiting_ GUARDED_BY(mu_);
  bool started_ GUARDED_BY(mu_) = false;
  bool running_ GUARDED_BY(mu_) = false;
  bool closed_ GUARDED_BY(mu_) = false;
  ThreadId runner_ GUARDED_BY(mu_);
};

}  // namespace penstock::transfer::local
