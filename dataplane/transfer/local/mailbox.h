// SPDX-License-Identifier: Apache-2.0
// Events in order, one at a time, without a thread of their own: whoever posts
// one also runs it, unless another thread is at it already, which then runs this
// one too. So an event may cause events of the other side, and those again of
// this one, without any of them nesting or locking.
#pragma once

#include <condition_variable>
#include <functional>
#include <thread>
#include <utility>

#include "control/sync/mutex.h"
#include "dataplane/transfer/fifo.h"

namespace penstock::transfer {

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

  // False behind Close(): `event` stays as it was.
  bool Post(Event&& event) {
    MutexLock lock(mu_);
    if (closed_) return false;
    waiting_.Push(std::move(event));
    Run();
    return true;
  }

  // No event begins any more; one that runs is waited for, unless it is the one
  // that calls this. Returns those that never ran.
  Fifo<Event> Close() {
    MutexLock lock(mu_);
    closed_ = true;
    idle_.wait(lock,
               [&]() REQUIRES(mu_) { return !running_ || runner_ == std::this_thread::get_id(); });
    return std::exchange(waiting_, Fifo<Event>());
  }

 private:
  // Lets go of the lock around each event.
  void Run() REQUIRES(mu_) {
    if (!started_ || running_) return;
    running_ = true;
    runner_ = std::this_thread::get_id();
    while (!waiting_.empty() && !closed_) {
      Event event = waiting_.Pop();
      mu_.unlock();
      handle_(event);
      mu_.lock();
    }
    running_ = false;
    idle_.notify_all();
  }

  const std::function<void(Event&)> handle_;
  Mutex mu_;
  std::condition_variable idle_;
  Fifo<Event> waiting_ GUARDED_BY(mu_);
  bool started_ GUARDED_BY(mu_) = false;
  bool running_ GUARDED_BY(mu_) = false;
  bool closed_ GUARDED_BY(mu_) = false;
  std::thread::id runner_ GUARDED_BY(mu_);
};

}  // namespace penstock::transfer
