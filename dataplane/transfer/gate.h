// SPDX-License-Identifier: Apache-2.0
// Stops events permanently: after Close() no event begins. Close() waits for a running event,
// unless it is called from inside that event.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "penstock/check.h"

#pragma GCC visibility push(default)
namespace penstock::transfer {

class Gate {
 public:
  // Returns false if the gate is closed; the event must then not run. Only one event runs at a
  // time.
  bool Enter() {
    std::lock_guard lock(mu_);
    if (closed_) return false;
    PENSTOCK_CHECK(inside_ == std::thread::id());
    inside_ = std::this_thread::get_id();
    return true;
  }
  void Leave() {
    {
      std::lock_guard lock(mu_);
      inside_ = std::thread::id();
    }
    left_.notify_all();
  }
  void Close() {
    std::unique_lock lock(mu_);
    closed_ = true;
    left_.wait(lock, [&] {
      return inside_ == std::thread::id() || inside_ == std::this_thread::get_id();
    });
  }

 private:
  std::mutex mu_;
  std::condition_variable left_;
  bool closed_ = false;
  std::thread::id inside_;  // empty: no event runs
};

}  // namespace penstock::transfer
#pragma GCC visibility pop
