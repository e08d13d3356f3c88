// SPDX-License-Identifier: Apache-2.0
// Slots for elements with several readers, in segments of this process. Other processes
// map them; what those write into their mapping stays their own.
//
// An element made here lies once for all who read it. Whoever tells another process
// of a slot keeps a loan on it until that process has given it back or is dead, so
// that a slot is free when nobody, here or elsewhere, reads it any more.
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
    size_t max_bytes = size_t{1} << 30;  // of its segments together
    // Of slots that one reader in another process may have at a time, so that one that keeps
    // elements, or has stopped, takes no more of the pool; it gets copies then. One is always
    // allowed.
    int64_t max_loan_bytes = int64_t{256} << 20;
  };

  // What others map. Stays mapped here while anyone keeps it.
  struct Segment {
    SharedSegment memory;
    SlotLayout layout;
    int64_t max_loan_bytes;  // see Options
    // The pool has given it up: all its slots are free, and none is lent again.
    // Whoever told others of it tells them that.
    std::atomic<bool> given_up{false};
  };

  // What finds no room, below max_bytes or in the process's bound for shared memory, is
  // lent by DefaultPool() instead, as are blocks below kFrameBelow (they travel in frames)
  // and with heads above kHeadRoom. Whoever is lent a slot for the first time waits for its
  // pages, as far as the block goes, and for nobody else's; if the machine has none left, it
  // is DefaultPool()'s turn too.
  static std::shared_ptr<SharedPool> Create(const Options& options);

  // Where a block lies that such a pool of this process lent the room for.
  struct Place {
    std::shared_ptr<const Segment> segment;
    uint32_t slot = 0;        // in the segment
    uint32_t head_bytes = 0;  // before the body's place
  };
  // nullopt if it is none, or not laid out as LendBlock() gave it. Any thread; one load
  // in a process that has no such pool.
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
  void Close();  // it ends when the last slot is back

  // None if no slot is free, or there are no pages for it.
  Loan LendFree(size_t head_bytes, size_t body_bytes);
  // Of a slot that is being lent.
  static absl::Status MakePresent(SharedSlot& slot, size_t body_bytes);
  // A segment with slots for bodies of `body_bytes`; whether there is one now.
  bool Grow(size_t body_bytes);

  SharedSlot* TakeFree(size_t body_bytes) REQUIRES(mu_);
  void PutFree(SharedSlot& slot) REQUIRES(mu_);
  // The room for a new segment, counted as reserved; no slots if there is none. Segments
  // that are wholly free make room, and are let go of outside the lock.
  SlotLayout Reserve(size_t body_bytes, std::vector<std::unique_ptr<Owned>>& gone) REQUIRES(mu_);

  const ForkGuard in_creator_;
  const Options options_;

  mutable Mutex mu_;
  std::vector<std::unique_ptr<Owned>> segments_ GUARDED_BY(mu_);
  std::map<size_t, SharedSlot*> free_ GUARDED_BY(mu_);  // lists, by bytes of a body
  bool closed_ GUARDED_BY(mu_) = false;
  int64_t lent_ GUARDED_BY(mu_) = 0;
  PoolCounters counters_ GUARDED_BY(mu_);
};

// `element`, or, unless it lies in such a pool's slot already or travels in a frame, one counted
// copy in a block of `pool`; the same element if there is no room for it.
Element InSharedSlot(Pool& pool, Element element);

}  // namespace penstock
