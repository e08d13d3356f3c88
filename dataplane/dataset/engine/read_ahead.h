// SPDX-License-Identifier: Apache-2.0
// Tunes how far ahead of its reader a node works, if the dataset leaves that open (kAutotune).
// There is no model of the whole pipeline: each node uses only its own observations. The depth
// grows while it is the only reason why the reader waits, within a memory budget that all datasets
// of the process share. The depth shrinks when the budget is exceeded.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock {

// The bytes of elements, ready or in progress, that nodes may hold beyond their least depth. Any
// thread.
class ReadAheadBudget {
 public:
  // A claim on this budget is also a claim on `within`, which must outlive this budget.
  explicit ReadAheadBudget(int64_t limit, ReadAheadBudget* within = nullptr)
      : limit_(limit), within_(within) {}
  ReadAheadBudget(const ReadAheadBudget&) = delete;
  ReadAheadBudget& operator=(const ReadAheadBudget&) = delete;

  // A quarter of the usable memory, unless SetLimit() changes it.
  static ReadAheadBudget& OfProcess();

  // Takes effect as nodes return their next elements.
  void SetLimit(int64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  int64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  // The claims exceed the limit only after the limit has been lowered.
  int64_t claimed() const { return claimed_.load(std::memory_order_relaxed); }

 private:
  friend class ReadAhead;
  // Claims `bytes` more bytes; a negative number returns bytes. False, and changes nothing, if the
  // limits do not allow the claim.
  bool Claim(int64_t bytes);
  bool exceeded() const {
    return claimed() > limit() || (within_ != nullptr && within_->exceeded());
  }

  std::atomic<int64_t> limit_;
  std::atomic<int64_t> claimed_{0};
  ReadAheadBudget* const within_;
};

// The read-ahead depth of one node, as a number of the node's elements. depth() is for any thread,
// the rest for one thread at a time.
class ReadAhead {
 public:
  // `least` ≤ depth() ≤ `most`; the depth starts at `least`. If `most` = `least`, the depth is
  // never tuned, and claims nothing from the budget.
  ReadAhead(ReadAheadBudget& budget, int64_t least, int64_t most);
  ~ReadAhead();  // returns its claim
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  int64_t depth() const { return depth_.load(std::memory_order_relaxed); }

  // Notes that an element of `bytes` bytes was returned. Reduces the depth if the budget is
  // exceeded.
  void Gave(int64_t bytes);
  // Notes that the reader waits and that only the depth kept the node from reading further ahead.
  // Increases the depth if this happens repeatedly and the budget allows it.
  void FellShort();

 private:
  // Claims the memory of `depth` elements. False, and changes nothing, if the budget lacks the
  // additional bytes.
  bool Claim(int64_t depth);

  ReadAheadBudget& budget_;
  const int64_t least_;
  const int64_t most_;
  std::atomic<int64_t> depth_;
  int64_t claimed_ = 0;
  int64_t mean_bytes_ = 0;  // of an element, weighted towards the latest elements; 0: none seen
  int64_t given_ = 0;
  int fell_short_ = 0;  // times in this round of kRound elements
};

}  // namespace penstock
