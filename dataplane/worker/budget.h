// SPDX-License-Identifier: Apache-2.0
// Limits the bytes of elements that a worker may have in transit to clients.
#pragma once

#include <atomic>
#include <cstdint>
#include <stop_token>

#include "control/sync/mutex.h"
#include "dataplane/transfer/polling.h"

namespace penstock::worker {

// Thread-safe. The limit is soft: an element that has already been made may be sent, even one that
// is larger than the whole budget.
class Budget {
 public:
  explicit Budget(int64_t bytes) : bytes_(bytes) {}

  // Call this when an element of `bytes` was sent.
  void Add(int64_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  // Call this when an element of `bytes` was received, or its link is gone.
  void Subtract(int64_t bytes);

  bool exhausted() const { return used_.load(std::memory_order_relaxed) >= bytes_; }
  // Waits while the budget is exhausted, until a stop is requested.
  void Wait(const std::stop_token& stop);

  int64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  void Wake();

  const int64_t bytes_;
  std::atomic<int64_t> used_{0};
  Mutex mu_;
  transfer::PollingCondition freed_;
};

}  // namespace penstock::worker
