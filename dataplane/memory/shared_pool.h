// SPDX-License-Identifier: Apache-2.0
// Slots for elements with several readers, in segments of this process. Other processes map the
// segments; their writes to the mapping stay private to them.
//
// An element made here exists once for all its readers. Code that tells another process about a
// slot keeps a loan on the slot until that process has returned it or has died. So a slot becomes
// free only when all processes have stopped reading it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "control/sync/mutex.h"
#include "dataplane/memory/pool.h"
#include "dataplane/memory/slot_segment.h"
#include "penstock/element.h"
#include "penstock/loan.h"

namespace penstock {

class SharedPool final : public Pool, public SlotOwner {
 public:
  struct Options {
    size_t max_bytes = size_t{1} << 30;  // of all its segments together
    // The maximum total size in bytes of the slots that one reader in another process may hold at a
    // time, so that a reader that keeps elements, or has stopped, cannot use up the pool. A reader
    // at this limit gets copies. One slot is always allowed.
    int64_t max_loan_bytes = int64_t{256} << 20;
  };

  // A segment that other processes map. Stays mapped here while a shared_ptr to it exists.
  struct Segment {
    SharedSegment memory;
    SlotLayout layout;
    int64_t max_loan_bytes;  // see Options
    // True once the pool has released the segment: all its slots are free, and none will be lent
    // again. The code that told other processes about the segment then notifies them.
    std::atomic<bool> given_up{false};
  };

  // Creates a pool. The pool passes a request on to DefaultPool() in these cases:
  // - The block does not fit within max_bytes or the process's limit on shared memory.
  // - The block is smaller than kFrameBelow; it then travels in a frame.
  // - The head of the block is larger than kHeadRoom.
  // - The machine has no pages left.
  // The first loan of a slot waits until the pages of its block are present, but not for the pages
  // of other slots.
  static std::shared_ptr<SharedPool> Create(const Options& options);

  // The position of a block in a segment of this process's pools.
  struct Place {
    std::shared_ptr<const Segment> segment;
    uint32_t slot = 0;        // in the segment
    uint32_t head_bytes = 0;  // before the body
  };
  // Returns the place of `block`; nullopt if no SharedPool of this process lent its memory, or if
  // the block is not laid out as LendBlock() requires. Any thread; one load in a process without
  // such a pool.
  static std::optional<Place> Find(absl::Span<const std::byte> block);

  absl::StatusOr<Loan> Lend(size_t bytes) override;
  absl::StatusOr<Loan> LendBlock(size_t head_bytes, size_t body_bytes) override;
  PoolCounters counters() const override;
  void TakeBack(Slot* slot) noexcept override;

 private:
  struct SharedSlot;
  struct Owned;

  explicit SharedPool(const Options& options);
  ~SharedPool();
  void Close();  // the pool deletes itself when the last slot has returned

  // Returns an empty loan if no slot is free, or if there are no pages for the slot.
  Loan LendFree(size_t head_bytes, size_t body_bytes);
  // Makes the first `body_bytes` of the body present. REQUIRES: `slot` is being lent.
  static absl::Status MakePresent(SharedSlot& slot, size_t body_bytes);
  // Adds a segment with slots for bodies of `body_bytes`; returns false if there is no memory for
  // it.
  bool Grow(size_t body_bytes);

  SharedSlot* TakeFree(size_t body_bytes) REQUIRES(mu_);
  void PutFree(SharedSlot& slot) REQUIRES(mu_);
  // Returns the layout of a new segment, counted as reserved; the layout has no slots if there is
  // no memory for the segment. To free memory, moves segments without a lent slot to `gone`, for
  // destruction outside the lock.
  SlotLayout Reserve(size_t body_bytes, std::vector<std::unique_ptr<Owned>>& gone) REQUIRES(mu_);

  const ForkGuard in_creator_;
  const Options options_;

  mutable Mutex mu_;
  std::vector<std::unique_ptr<Owned>> segments_ GUARDED_BY(mu_);
  std::map<size_t, SharedSlot*> free_ GUARDED_BY(mu_);  // lists, by body size in bytes
  bool closed_ GUARDED_BY(mu_) = false;
  int64_t lent_ GUARDED_BY(mu_) = 0;
  PoolCounters counters_ GUARDED_BY(mu_);
};

// Returns `element` if it is already in a slot of a SharedPool or travels in a frame. Otherwise
// returns one counted copy in a block of `pool`, or `element` itself if there is no memory for the
// copy.
Element InSharedSlot(Pool& pool, Element element);

}  // namespace penstock
