// SPDX-License-Identifier: Apache-2.0
// The pool on heap memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "control/sync/mutex.h"
#include "dataplane/memory/free_slots.h"
#include "dataplane/memory/pool.h"
#include "dataplane/memory/registrar.h"

namespace penstock {

// Size classes are 256 B, 384 B, 512 B, 768 B, … 256 MiB: at most a third of a slot is unused. A
// class has its own lock, held for nanoseconds, and a list of free slots (free_slots.h). A slot of
// 16 KiB or more that another thread returned rests in that list. A slot above the largest class
// has its own segment. The two such segments that were returned last are kept for slots of about
// their size; all others are returned to the system. Before a new segment is made, segments without
// a lent slot are freed if the pool holds more than twice the lent bytes plus 256 MiB.
class HeapPool final : public Pool, public SlotOwner {
 public:
  // With a registrar every segment is registered when it is made, and segments of many slots are
  // larger.
  explicit HeapPool(PoolOptions options, std::shared_ptr<Registrar> registrar = nullptr);

  absl::StatusOr<Loan> Lend(size_t bytes) override;
  PoolCounters counters() const override;
  void TakeBack(Slot* slot) noexcept override;

  // Stops lending: the pool deletes itself when the last slot has returned.
  void Close() ABSL_NO_THREAD_SAFETY_ANALYSIS;  // it holds the locks of all classes at once

  static constexpr int kClasses = 41;
  // Returns the smallest class of at least `bytes`; kClasses if there is none.
  static int ClassOf(size_t bytes);
  static size_t ClassBytes(int size_class);

 private:
  struct Segment;
  struct HeapSlot;
  struct SizeClass;

  ~HeapPool() override;
  using TakeSlot = HeapSlot* (FreeSlots<HeapSlot>::*)();
  Loan LendFree(SizeClass& its, TakeSlot take);
  absl::StatusOr<Loan> Grow(int size_class);
  absl::StatusOr<Loan> LendOwnSegment(size_t bytes);
  // Lends one of the kept segments; an empty loan if none is of about that size.
  Loan LendKept(size_t bytes);
  // REQUIRES: the segment's bytes are reserved. An error unreserves them.
  absl::StatusOr<std::unique_ptr<Segment>> NewSegment(size_t count, size_t slot_bytes,
                                                      int size_class);
  // Counts `bytes` of new segments; ResourceExhausted if they do not fit even after free segments
  // have been released.
  absl::Status Reserve(size_t bytes) REQUIRES(grow_mu_);
  // Call this after a slot of `returned` bytes with its own segment has been returned. Returns the
  // segment to free if too many are kept. REQUIRES: the lock of `own` is held.
  std::unique_ptr<Segment> TakeOldestKept(SizeClass& own, size_t returned);
  bool TooMuchLiesIdle() const;
  void ReleaseFreeSegments();

  const PoolOptions options_;
  const TakeSlot take_;  // a pool with a bound does not grow to let slots rest
  const std::shared_ptr<Registrar> registrar_;                    // outlives its last registration
  std::unique_ptr<std::array<SizeClass, kClasses + 1>> classes_;  // the last: segments of one slot

  Mutex grow_mu_;  // taken before a class's lock, never inside it
  std::atomic<int64_t> reserved_{0};
  std::atomic<int64_t> segments_allocated_{0};
  std::atomic<int64_t> registrations_{0};

  bool closed_ = false;  // written with the locks of all classes held, read with one of them
  std::atomic<int64_t> remaining_{0};  // once closed: slots still lent, and Close() itself
};

// Returns a pool whose slots are all in memory that `registrar` has registered. Lend() also returns
// the registrar's errors. A segment for which the registrar returns nullptr is used unregistered.
std::shared_ptr<Pool> RegisteredPool(PoolOptions options, std::shared_ptr<Registrar> registrar);

}  // namespace penstock
