// SPDX-License-Identifier: Apache-2.0
// Events in order, one at a time, without a thread of their own: whoever posts
// one also runs it, unless another thread is at it already, which then runs this
// one too. So an event may cause events of the other side, and those again of
// this one, without any of them nesting or locking.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "dataplane/transfer/fifo.h"

namespace penstock::transfer {

// Thread-safe. Event is default-constructible and movable.
template <class Event>
class Mailbox {
 public:
  // Nothing runs before Start().
  explicit Mailbox(std::function<void(Event&)> handle) : handle_(std::move(handle)) {}

  void Start() {
    std::unique_lock lock(mu_);
    started_ = true;
    Run(lock);
  }

  // False behind Close(): `event` stays as it was.
  bool Post(Event&& event) {
    std::unique_lock lock(mu_);
    if (closed_) return false;
    waiting_.Push(std::move(event));
    Run(lock);
    return true;
  }

  // No event begins any more; one that runs is waited for, unless it is the one
  // that calls this. Returns those that never ran.
  Fifo<Event> Close() {
    std::unique_lock lock(mu_);
    closed_ = true;
    idle_.wait(lock, [&] { return !running_ || runner_ == std::this_thread::get_id(); });
    return std::exchange(waiting_, Fifo<Event>());
  }

 private:
  void Run(std::unique_lock<std::mutex>& lock) {
    if (!started_ || running_) return;
    running_ = true;
    runner_ = std::this_thread::get_id();
    while (!waiting_.empty() && !closed_) {
      Event event = waiting_.Pop();
      lock.unlock();
      handle_(event);
      lock.lock();
    }
    running_ = false;
    idle_.notify_all();
  }

  const std::function<void(Event&)> handle_;
  std::mutex mu_;
  std::condition_variable idle_;
  Fifo<Event> waiting_;
  bool started_ = false;
  bool running_ = false;
  bool closed_ = false;
  std::thread::id runner_;
};

}  // namespace penstock::transfer
