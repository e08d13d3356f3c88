// SPDX-License-Identifier: Apache-2.0
// Limits the memory of the elements that transforms keep (Shuffle, Cache, windows and others). A
// dataset's author sets the number of these elements, so on a worker one dataset could otherwise
// take the memory of all others. A transform charges what it keeps to the account of its partition,
// and the accounts of a worker share a budget. A dataset that a process reads for itself has no
// account: nothing is limited and nothing is counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "control/sync/mutex.h"

namespace penstock {

class BuildSite;  // dataplane/dataset/engine/build_site.h
class Element;    // penstock/element.h

// The bytes that the partitions of a worker may keep together. Any thread.
class BufferBudget {
 public:
  explicit BufferBudget(int64_t bytes) : bytes_(bytes) {}
  BufferBudget(const BufferBudget&) = delete;
  BufferBudget& operator=(const BufferBudget&) = delete;

  int64_t bytes() const { return bytes_; }
  int64_t taken() const { return taken_.load(std::memory_order_relaxed); }

 private:
  friend class BufferAccount;
  // Gives `bytes` more to an account that has `held`. False if they are not left, or if the account
  // would then hold more than kMostOfRest times the bytes that are left after it. Hence accounts
  // that grow without end always leave bytes for others.
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

  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  const BufferBudget& budget() const { return budget_; }

 private:
  // Makes taken_ at least used_. It takes more than that if the budget has it, so that few elements
  // need a call.
  bool TakeMore();
  void ReturnSome();

  BufferBudget& budget_;
  std::atomic<int64_t> used_{0};
  Mutex mu_;                       // held while taken_ changes
  std::atomic<int64_t> taken_{0};  // of the budget
};

// A charge to the account of a partition, for elements that a node keeps. The destructor gives the
// bytes back. One thread at a time.
class BufferCharge {
 public:
  BufferCharge() = default;
  BufferCharge(BufferCharge&& other) noexcept
      : account_(other.account_), bytes_(std::exchange(other.bytes_, 0)) {}
  BufferCharge& operator=(BufferCharge&& other) noexcept {
    Return();
    account_ = other.account_;
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~BufferCharge() { Return(); }

  // Adds the slot of an element that the node at `site` keeps, and kOverhead for the node's own
  // memory. If another holder has the element too, its slot counts there. If the budget does not
  // have the bytes, returns a ResourceExhausted error with IsExhausted(), which names the node.
  absl::Status Add(const BuildSite& site, const Element& element);
  // Adds `bytes` bytes; 0: only kOverhead, for an error in place of an element.
  absl::Status Add(const BuildSite& site, int64_t bytes = 0);
  // Adds the element without an error: false if the budget does not have the bytes.
  bool TryAdd(const BuildSite& site, const Element& element);

  // The bytes that are added for each kept item: its place in the node, which may be part of a map,
  // and in the vectors of numbers beside it.
  static constexpr int64_t kOverhead = 256;

 private:
  bool TryAddBytes(const BuildSite& site, int64_t bytes);
  void Return() {
    if (bytes_ > 0) account_->Subtract(std::exchange(bytes_, 0));
  }

  BufferAccount* account_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace penstock
