// SPDX-License-Identifier: Apache-2.0
// The slots of a link as its worker sees them: in segments that the client made and passed on. A
// slot is free, or held here (an element is being made in it, is being copied into it, or waits in
// it), or at the client. A slot at the client is also held here until its element has been
// received. A slot is free again when neither side has it. The worker reads nothing from memory
// that the client can write: heads stay in private memory until they are given away.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/free_slots.h"
#include "dataplane/memory/pool.h"
#include "dataplane/memory/slot_segment.h"
#include "dataplane/transfer/shm/word.h"
#include "penstock/loan.h"

namespace penstock::transfer::shm {

// A pool for elements that can be sent without a copy. If no slot is free, the pool lends other
// memory. The object keeps itself alive until the last slot that is held here has been returned.
class SendSlots : public Pool, public SlotOwner, public std::enable_shared_from_this<SendSlots> {
 public:
  ~SendSlots() override;

  // Adds a segment from the client, of at most `most_bytes`, with all slots free. InvalidArgument
  // if the segment is impossible or larger, or if its number is in use; ResourceExhausted if the
  // segment would exceed this process's limit on shared memory, or cannot be mapped.
  absl::Status Add(uint64_t number, uint64_t slots, uint64_t body_bytes, size_t most_bytes,
                   const Descriptor& segment);

  struct Place {
    Loan loan;
    std::byte* body = nullptr;  // with kHeadRoom private bytes before it
    size_t body_bytes = 0;      // the client sees the body and may write to it at any time
  };
  // Returns true if `owner` owns memory that LendBlock() of any link lent because no slot was free.
  static bool IsMissed(const SlotOwner* owner);
  // Returns the number of blocks that were made elsewhere since the last call because no slot was
  // free.
  uint64_t TakeMissed() {
    return missed_.load(std::memory_order_relaxed) == 0 ? 0 : missed_.exchange(0);
  }
  // Takes a free slot with space for a body of `bytes` bytes; nullopt if there is none.
  std::optional<Place> Claim(size_t bytes);
  // Gives the client the slot that keeps `block`, as GiveAway() does. nullopt unless `block` is in
  // one of these slots, the slot is held only for that block, and the body is in its proper
  // position.
  std::optional<SlotWord> GiveInPlace(absl::Span<const std::byte> block);
  // Returns true if the address is in one of the segments.
  bool Owns(const std::byte* address) const;
  // Gives the slot of `body` to the client, with the head before the body; returns the word for it.
  // REQUIRES: the slot is held here.
  SlotWord GiveAway(const std::byte* body, uint32_t head_bytes);
  // Handles a slot that the client has returned. DataLoss if the client does not have that slot, or
  // if the generation differs.
  absl::Status OnReturned(const SlotWord& word);

  // Removes completely free segments whose slots do not fit `bytes`, if their slots are large or if
  // there are many such segments. Returns the numbers of these segments, for the client to retire.
  std::vector<uint32_t> TakeIdle(size_t bytes);

  // Call this when the link is gone: from then on no slot is free.
  void Close();

  absl::StatusOr<Loan> Lend(size_t bytes) override;
  absl::StatusOr<Loan> LendBlock(size_t head_bytes, size_t body_bytes) override;
  PoolCounters counters() const override;
  void TakeBack(Slot* slot) noexcept override;

 private:
  struct Segment;
  struct SharedSlot : Slot {
    std::byte* body = nullptr;
    Segment* segment = nullptr;
    SharedSlot* next_free = nullptr;
    uint32_t number = 0;
    uint32_t generation = 0;
    bool held = false;
    bool at_client = false;
  };
  struct Segment {
    SharedSegment memory;  // heads are copied here when given away
    SlotView view;
    SlotLayout layout;
    std::unique_ptr<SharedSlot[]> slots;
    uint32_t free = 0;
  };

  SharedSlot* TakeFree(size_t body_bytes) REQUIRES(mu_);
  void PutFree(SharedSlot& slot) REQUIRES(mu_);
  SharedSlot* SlotAt(const std::byte* address) const REQUIRES(mu_);
  static SlotWord GiveAwayLocked(SharedSlot& slot, uint32_t head_bytes);
  void RemoveFromFree(const Segment& segment) REQUIRES(mu_);

  const ForkGuard in_creator_;

  std::atomic<uint64_t> missed_{0};
  // Changed with mu_ held, read at any time.
  struct {
    std::atomic<int64_t> segments_allocated{0}, slots_lent{0}, slots_returned{0};
    std::atomic<int64_t> bytes_reserved{0}, bytes_lent{0};
  } counters_;

  mutable Mutex mu_;
  std::map<uint32_t, std::unique_ptr<Segment>> segments_ GUARDED_BY(mu_);  // by number
  std::map<size_t, FreeSlots<SharedSlot>> free_ GUARDED_BY(mu_);           // by bytes of a body
  bool closed_ GUARDED_BY(mu_) = false;
  int64_t held_ GUARDED_BY(mu_) = 0;
  // Set while this object is closed and slots are still held.
  std::shared_ptr<SendSlots> self_ GUARDED_BY(mu_);
};

}  // namespace penstock::transfer::shm
