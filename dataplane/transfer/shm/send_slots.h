// SPDX-License-Identifier: Apache-2.0
// The slots of a link as its worker sees them: segments that the client made and
// passed on. A slot is free, held here (an element is made or copied into it, or
// waits), at the client, or both: held until the element was received, although it
// is the client's already. It is free again when neither has it. Nothing is read from
// where the client can write: heads lie in private memory until they are given away.
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

namespace penstock::transfer {

// As a pool, where elements are made that shall not be copied on their way; it
// lends other memory when no slot is free. Lives on, invisibly, until the last
// slot that is held here was let go of.
class SendSlots : public Pool, public SlotOwner, public std::enable_shared_from_this<SendSlots> {
 public:
  ~SendSlots() override;

  // A segment from the client, of at most so many bytes, all slots free. InvalidArgument for one
  // that is none, or larger, or whose number is taken; ResourceExhausted above this process's
  // bound for shared memory, or if it cannot be mapped.
  absl::Status Add(uint64_t number, uint64_t slots, uint64_t body_bytes, size_t most_bytes,
                   const Descriptor& segment);

  struct Place {
    Loan loan;
    std::byte* body = nullptr;  // with kHeadRoom bytes before it, which the client does not see
    size_t body_bytes = 0;      // the client sees, and may write, them at any time
  };
  // Of a loan: whether it is memory that LendBlock() lent in a free slot's place, of any link.
  static bool IsMissed(const SlotOwner* owner);
  // How many blocks were made elsewhere since this was asked last, as no slot was free for them.
  uint64_t TakeMissed() {
    return missed_.load(std::memory_order_relaxed) == 0 ? 0 : missed_.exchange(0);
  }
  // A free slot whose body takes `bytes`; nullopt if there is none.
  std::optional<Place> Claim(size_t bytes);
  // Gives the client the slot that keeps `block`, as GiveAway() does, if that is one of these, is
  // held for it alone and its body lies where a body belongs.
  std::optional<SlotWord> GiveInPlace(absl::Span<const std::byte> block);
  // Whether that lies in one of the segments.
  bool Owns(const std::byte* address) const;
  // Gives the slot of that body to the client, with the head that lies before the body; the word
  // that says so. REQUIRES: held here.
  SlotWord GiveAway(const std::byte* body, uint32_t head_bytes);
  // The client has given it back. DataLoss if it has not got it, or not from now.
  absl::Status OnReturned(const SlotWord& word);

  // Segments to be retired, of which this lets go: wholly free ones, if they are
  // large or if there are many besides those with slots for `bytes`.
  std::vector<uint32_t> TakeIdle(size_t bytes);

  // The link is gone: nothing is free any more.
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
    SharedSegment memory;  // where heads go when they are given away
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
  // Closed with slots held: until they are back.
  std::shared_ptr<SendSlots> self_ GUARDED_BY(mu_);
};

}  // namespace penstock::transfer
