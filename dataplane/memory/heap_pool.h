// SPDX-License-Identifier: Apache-2.0
// The pool on ordinary memory.
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

// Size classes are 256 B, 384 B, 512 B, 768 B, … 256 MiB: at most a third of a
// slot lies idle. A class has its own lock, held for some nanoseconds, and a
// list of free slots (free_slots.h), in which those of 16 KiB and more rest that
// another thread gave back. A larger slot is a segment of its
// own; the two that returned last are kept for others of about their size, and all
// else goes back to the system. When a class needs a new segment and more than twice
// what is lent lies here, and 256 MiB, segments of which nothing is lent go back first.
class HeapPool final : public Pool, public SlotOwner {
 public:
  // With a registrar every segment is registered when it is made, and segments of
  // many slots are larger.
  explicit HeapPool(PoolOptions options, std::shared_ptr<Registrar> registrar = nullptr);

  absl::StatusOr<Loan> Lend(size_t bytes) override;
  PoolCounters counters() const override;
  void TakeBack(Slot* slot) noexcept override;

  // No more will be lent: the pool ends itself when the last slot is back.
  void Close() ABSL_NO_THREAD_SAFETY_ANALYSIS;  // it holds the locks of all classes at once

  static constexpr int kClasses = 41;
  // The smallest class of at least `bytes`; kClasses if there is none.
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
  // One of those kept; none if there is none of about that size.
  Loan LendKept(size_t bytes);
  // Of bytes that are reserved, and are not any more if it fails.
  absl::StatusOr<std::unique_ptr<Segment>> NewSegment(size_t count, size_t slot_bytes,
                                                      int size_class);
  // Counts `bytes` of new segments; ResourceExhausted if they do not fit even
  // after free segments were given back.
  absl::Status Reserve(size_t bytes) REQUIRES(grow_mu_);
  // Behind the return of an own slot of so many bytes: the segment that is one too many to be kept,
  // if there is one. REQUIRES: its lock is held.
  std::unique_ptr<Segment> TakeOldestKept(SizeClass& own, size_t returned);
  bool TooMuchLiesIdle() const;
  void ReleaseFreeSegments();

  const PoolOptions options_;
  const TakeSlot take_;  // a pool with a bound does not grow for slots to rest
  const std::shared_ptr<Registrar> registrar_;                    // behind its last registration
  std::unique_ptr<std::array<SizeClass, kClasses + 1>> classes_;  // the last: own segments

  Mutex grow_mu_;  // taken before a class's lock, never inside it
  std::atomic<int64_t> reserved_{0};
  std::atomic<int64_t> segments_allocated_{0};
  std::atomic<int64_t> registrations_{0};

  bool closed_ = false;                // written with all classes' locks held, read with one
  std::atomic<int64_t> remaining_{0};  // once closed: slots still lent, and Close() itself
};

// A pool all of whose slots lie in memory that `registrar` knows. Lend() has its errors too;
// a segment for which it gives nullptr is used unregistered.
std::shared_ptr<Pool> RegisteredPool(PoolOptions options, std::shared_ptr<Registrar> registrar);

}  // namespace penstock
