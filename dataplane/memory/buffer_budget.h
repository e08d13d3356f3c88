// SPDX-License-Identifier: Apache-2.0
// Limits the memory of the elements that transforms keep (Shuffle, Cache, windows and others). A
// dataset's author sets the number of these elements, so on a worker one dataset could otherwise
// take the memory of all others. A transform charges what it keeps to the account of its partition,
// and the accounts of a job on a worker share a budget, which is a part of the worker's. A dataset
// that a process reads for itself has no account: nothing is limited and nothing is counted.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "control/sync/mutex.h"

namespace penstock {

// The bytes that several partitions of a worker may keep together: all of them, or those of one
// job. Any thread.
class BufferBudget {
 public:
  // `setting`: the worker's setting with the limit, for errors; must outlive the budget.
  explicit BufferBudget(int64_t bytes, const char* setting = "buffer_budget_bytes")
      : bytes_(bytes), setting_(setting) {}
  // Makes a part of `whole`, which must outlive it. Bytes that are taken of the part count for
  // both.
  BufferBudget(int64_t bytes, const char* setting, BufferBudget& whole)
      : bytes_(bytes), setting_(setting), whole_(&whole) {}
  BufferBudget(const BufferBudget&) = delete;
  BufferBudget& operator=(const BufferBudget&) = delete;

  int64_t bytes() const { return bytes_; }
  int64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  const char* setting() const { return setting_; }
  bool IsPart() const { return whole_ != nullptr; }
  // Returns whether nodes that can do without (Cache, Prefetch) may add `bytes`. They leave a
  // quarter for nodes that cannot.
  bool HasRoomForOptional(int64_t bytes) const;
  // Returns the budget that refuses `bytes` more to an account that has `held`: this one or the
  // whole.
  const BufferBudget& Refusing(int64_t held, int64_t bytes) const;

 private:
  friend class BufferAccount;
  // Gives `bytes` more to an account that has `held`. False if they are not left, or if the account
  // would then hold more than kMostOfRest times the bytes that are left after it. Hence accounts
  // that grow without end always leave some bytes for others.
  bool Take(int64_t held, int64_t bytes);
  bool TakeOfThis(int64_t held, int64_t bytes);
  bool Allows(int64_t taken, int64_t held, int64_t bytes) const;
  void Return(int64_t bytes);

  static constexpr int64_t kMostOfRest = 16;
  const int64_t bytes_;
  const char* const setting_;
  BufferBudget* const whole_ = nullptr;
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
