// SPDX-License-Identifier: Apache-2.0
// Limits the memory of the elements that transforms keep (Shuffle, Cache, windows and others). A
// dataset's author sets the number of these elements, so on a worker one dataset could otherwise
// take the memory of all others. A transform charges what it keeps to the account of its partition,
// and the accounts of a worker share a budget. A dataset that a process reads for itself has no
// account: nothing is limited and nothing is counted.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "control/sync/mutex.h"

namespace penstock {

// The bytes that the partitions of a worker may keep together. Any thread.
class BufferBudget {
 public:
  explicit BufferBudget(int64_t bytes) : bytes_(bytes) {}
  BufferBudget(const BufferBudget&) = delete;
  BufferBudget& operator=(const BufferBudget&) = delete;

  int64_t bytes() const { return bytes_; }
  int64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  // The bytes up to which nodes that can do without (Cache, Prefetch) may add to what is taken. The
  // rest is for nodes that cannot.
  int64_t bytes_for_optional() const { return bytes_ / 4 * 3; }

 private:
  friend class BufferAccount;
  // Gives `bytes` more to an account that has `held`. False if they are not left, or if the account
  // would then hold more than kMostOfRest times the bytes that are left after it. Hence accounts
  // that grow without end always leave some bytes for others.
  bool Take(int64_t held, int64_t bytes);
  void Return(int64_t bytes) { taken_.fetch_sub(bytes, std::memory_order_relaxed); }

  static constexpr int64_t kMostOfRest = 16;
  const int64_t bytes_;
  std::atomic<int64_t> taken_{0};
};

// The bytes that one partition keeps. Any thread. `budget` must outlive the account, and the
// account its charges.
class BufferAccount {
 public:
  explicit BufferAccount(BufferBudget& budget) : budget_(budget) {}
  BufferAccount(const BufferAccount&) = delete;
  BufferAccount& operator=(const BufferAccount&) = delete;
  ~BufferAccount() { budget_.Return(taken_.load(std::memory_order_relaxed)); }

  // False, and changes nothing, if the budget does not have the bytes.
  bool Add(int64_t bytes);
  void Subtract(int64_t bytes);
  // Adds `overhead`, and `bytes` if no holder of this slot has added them yet. Each holder calls
  // SubtractSlot() while it still holds the slot.
  bool AddSlot(const void* slot, int64_t bytes, int64_t overhead);
  void SubtractSlot(const void* slot, int64_t overhead);

  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  const BufferBudget& budget() const { return budget_; }

 private:
  struct SharedSlot {
    int64_t holders = 0;
    int64_t bytes = 0;
  };

  // Raises used_ if it stays within taken_.
  bool AddWithinTaken(int64_t bytes);
  // Returns bytes to the budget that are taken and not used. If another thread adds some at the
  // same time, used_ is above taken_ until the next Add().
  void ReturnIdle();

  BufferBudget& budget_;
  std::atomic<int64_t> used_{0};
  // The part of the budget that the account has. It is more than used_, so that few elements need
  // the budget. It changes under mu_.
  std::atomic<int64_t> taken_{0};
  Mutex mu_;
  Mutex slots_mu_;  // taken before mu_
  absl::flat_hash_map<const void*, SharedSlot> slots_ GUARDED_BY(slots_mu_);
};

}  // namespace penstock
