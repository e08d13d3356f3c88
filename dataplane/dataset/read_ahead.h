// SPDX-License-Identifier: Apache-2.0
// How far ahead of its reader a node works, where the dataset leaves that open
// (kAutotune): no model of the whole, but each node by what it sees. A depth
// grows while its reader waits for no other reason, within a budget of memory
// that all datasets of the process share, and shrinks when that is exceeded.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock {

// Bytes that nodes may hold ready or in work beyond their least. Any thread.
class ReadAheadBudget {
 public:
  // What is claimed here is claimed of `within` too, which outlives this.
  explicit ReadAheadBudget(int64_t limit, ReadAheadBudget* within = nullptr)
      : limit_(limit), within_(within) {}
  ReadAheadBudget(const ReadAheadBudget&) = delete;
  ReadAheadBudget& operator=(const ReadAheadBudget&) = delete;

  // A quarter of the machine's memory until it is set otherwise.
  static ReadAheadBudget& OfProcess();

  // Takes effect as nodes give out their next elements.
  void SetLimit(int64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  int64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  // Never grows beyond the limit; above it only after that was lowered.
  int64_t claimed() const { return claimed_.load(std::memory_order_relaxed); }

 private:
  friend class ReadAhead;
  // False, and nothing is changed, if the limits do not allow it. What is negative is given back.
  bool Claim(int64_t bytes);
  bool exceeded() const {
    return claimed() > limit() || (within_ != nullptr && within_->exceeded());
  }

  std::atomic<int64_t> limit_;
  std::atomic<int64_t> claimed_{0};
  ReadAheadBudget* const within_;
};

// The depth of one node, in its elements. depth() is for any thread, the rest
// for one at a time.
class ReadAhead {
 public:
  // `least` ≤ depth() ≤ `most`, from `least` on. `most` = `least`: never tuned, and no
  // claim to the budget.
  ReadAhead(ReadAheadBudget& budget, int64_t least, int64_t most);
  ~ReadAhead();  // its claim is given back
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  int64_t depth() const { return depth_.load(std::memory_order_relaxed); }

  // An element of so many bytes was given out. Shrinks if the budget is exceeded.
  void Gave(int64_t bytes);
  // The reader waits, and only the depth kept the node from being further. Grows if
  // that happens again and again and the budget has room.
  void FellShort();

 private:
  // Claims the memory of `depth` elements; false, and nothing is changed, if the
  // budget does not have what it takes more.
  bool Claim(int64_t depth);

  ReadAheadBudget& budget_;
  const int64_t least_;
  const int64_t most_;
  std::atomic<int64_t> depth_;
  int64_t claimed_ = 0;
  int64_t mean_bytes_ = 0;  // of an element, weighed towards the latest; 0: none seen
  int64_t given_ = 0;
  int fell_short_ = 0;  // times in this round of kRound elements
};

}  // namespace penstock
