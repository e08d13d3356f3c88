// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/shm/send_slots.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "dataplane/element/block.h"
#include "dataplane/memory/heap_pool.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock::transfer::shm {
namespace {

// This many bytes of completely free segments with slots of a different size are kept.
constexpr size_t kKeptIdle = 64 << 20;
// A segment with slots above the largest size class is not kept once it is completely free.
const size_t kLargestKept = HeapPool::ClassBytes(HeapPool::kClasses - 1);

}  // namespace

SendSlots::~SendSlots() = default;

absl::Status SendSlots::Add(uint64_t number, uint64_t slots, uint64_t body_bytes, size_t most_bytes,
                            const Descriptor& descriptor) {
  if (number >> (kSlotNumberBits - kSlotInSegmentBits) != 0 || !IsPossible(slots, body_bytes)) {
    return absl::InvalidArgumentError("the client's shared segment has an invalid layout");
  }
  auto segment = std::make_unique<Segment>();
  segment->layout = {.slots = static_cast<uint32_t>(slots), .body_bytes = body_bytes};
  if (segment->layout.bytes() > most_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the client's shared segment has ", segment->layout.bytes(),
                     " bytes, but the worker requested at most ", most_bytes, " bytes"));
  }
  ASSIGN_OR_RETURN(segment->memory, SharedSegment::Open(descriptor, segment->layout.bytes()));
  ASSIGN_OR_RETURN(segment->view, SlotView::Map(descriptor.get(), segment->layout));
  segment->slots = std::make_unique<SharedSlot[]>(slots);

  MutexLock lock(mu_);
  const auto its = static_cast<uint32_t>(number);
  if (segments_.contains(its)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the client created the shared segment ", number, " twice"));
  }
  for (uint32_t i = 0; i < segment->layout.slots; ++i) {
    SharedSlot& slot = segment->slots[i];
    slot.body = segment->view.body(i);
    slot.owner = this;
    slot.segment = segment.get();
    slot.number = its << kSlotInSegmentBits | i;
    PutFree(slot);
  }
  ++counters_.segments_allocated;
  counters_.bytes_reserved += static_cast<int64_t>(segment->layout.bytes());
  segments_.emplace(its, std::move(segment));
  return absl::OkStatus();
}

SendSlots::SharedSlot* SendSlots::TakeFree(size_t body_bytes) {
  if (closed_) return nullptr;
  // A slot of twice the size is better than none.
  for (auto list = free_.lower_bound(body_bytes);
       list != free_.end() && list->first / 2 <= std::max<size_t>(body_bytes, kPageBytes * 32);
       ++list) {
    SharedSlot* const slot = list->second.TakeAny();
    if (slot == nullptr) continue;
    --slot->segment->free;
    slot->held = true;
    slot->holders.store(1, std::memory_order_relaxed);
    ++held_;
    ++counters_.slots_lent;
    counters_.bytes_lent += static_cast<int64_t>(slot->segment->layout.slot_bytes());
    return slot;
  }
  return nullptr;
}

void SendSlots::PutFree(SharedSlot& slot) {
  const size_t body_bytes = slot.segment->layout.body_bytes;
  free_.try_emplace(body_bytes, body_bytes).first->second.Rest(slot);
  ++slot.segment->free;
}

std::optional<SendSlots::Place> SendSlots::Claim(size_t bytes) {
  MutexLock lock(mu_);
  SharedSlot* slot = TakeFree(bytes);
  if (slot == nullptr) return std::nullopt;
  slot->data = slot->body - kHeadRoom;
  slot->bytes = slot->segment->layout.slot_bytes();
  return Place{Loan(slot), slot->body, slot->segment->layout.body_bytes};
}

namespace {

Pool& MissedPool() {
  static const auto& pool = *new std::shared_ptr<Pool>(Pool::Create());
  return *pool;
}

}  // namespace

bool SendSlots::IsMissed(const SlotOwner* owner) {
  static const auto* const missed = dynamic_cast<const SlotOwner*>(&MissedPool());
  return owner == missed;
}

absl::StatusOr<Loan> SendSlots::Lend(size_t bytes) {
  return DefaultPool().Lend(bytes);  // the body's position is known only for a block
}

absl::StatusOr<Loan> SendSlots::LendBlock(size_t head_bytes, size_t body_bytes) {
  // Smaller blocks travel in frames, and larger heads do not fit before a body.
  if (head_bytes + body_bytes >= kFrameBelow && head_bytes <= kHeadRoom) {
    MutexLock lock(mu_);
    if (SharedSlot* slot = TakeFree(body_bytes); slot != nullptr) {
      slot->data = slot->body - head_bytes;
      slot->bytes = head_bytes + slot->segment->layout.body_bytes;
      return Loan(slot);
    }
    missed_.fetch_add(1, std::memory_order_relaxed);
    return MissedPool().Lend(head_bytes + body_bytes);
  }
  return DefaultPool().Lend(head_bytes + body_bytes);
}

SendSlots::SharedSlot* SendSlots::SlotAt(const std::byte* address) const {
  for (const auto& [number, segment] : segments_) {
    const absl::Span<const std::byte> memory = segment->view.memory();
    if (address < memory.data() || address >= memory.data() + memory.size()) continue;
    const auto offset = static_cast<size_t>(address - memory.data());
    return &segment->slots[offset / segment->layout.slot_bytes()];
  }
  return nullptr;
}

std::optional<SlotWord> SendSlots::GiveInPlace(absl::Span<const std::byte> block) {
  MutexLock lock(mu_);
  SharedSlot* slot = SlotAt(block.data());
  if (slot == nullptr || !slot->held || slot->at_client || slot->data != block.data()) {
    return std::nullopt;
  }
  const auto head_bytes = static_cast<uint32_t>(slot->body - slot->data);
  if (PrefixOf(block.data()).head_bytes != head_bytes) return std::nullopt;
  return GiveAwayLocked(*slot, head_bytes);
}

bool SendSlots::Owns(const std::byte* address) const {
  MutexLock lock(mu_);
  return SlotAt(address) != nullptr;
}

SlotWord SendSlots::GiveAway(const std::byte* body, uint32_t head_bytes) {
  MutexLock lock(mu_);
  SharedSlot* slot = SlotAt(body);
  PENSTOCK_CHECK(slot != nullptr && slot->held && !slot->at_client && head_bytes <= kHeadRoom);
  return GiveAwayLocked(*slot, head_bytes);
}

SlotWord SendSlots::GiveAwayLocked(SharedSlot& slot, uint32_t head_bytes) {
  const Segment& segment = *slot.segment;
  const auto offset = slot.body - segment.view.memory().data() - head_bytes;
  std::memcpy(segment.memory.memory().data() + offset, slot.body - head_bytes, head_bytes);
  slot.at_client = true;
  return {.slot = slot.number, .generation = slot.generation, .head_bytes = head_bytes};
}

absl::Status SendSlots::OnReturned(const SlotWord& word) {
  const uint32_t in_segment = word.slot & ((1u << kSlotInSegmentBits) - 1);
  MutexLock lock(mu_);
  auto found = segments_.find(word.slot >> kSlotInSegmentBits);
  if (found == segments_.end() || in_segment >= found->second->layout.slots) {
    return absl::DataLossError(
        absl::StrCat("the client returned the shared slot ", word.slot, ", which does not exist"));
  }
  SharedSlot& slot = found->second->slots[in_segment];
  if (!slot.at_client || slot.generation != word.generation) {
    return absl::DataLossError(absl::StrCat("the client returned the shared slot ", word.slot,
                                            " of generation ", word.generation,
                                            ", which it does not hold"));
  }
  slot.at_client = false;
  slot.generation = (slot.generation + 1) & kGenerationMask;
  if (!slot.held) PutFree(slot);
  return absl::OkStatus();
}

void SendSlots::TakeBack(Slot* returned) noexcept {
  if (!in_creator_) return;
  auto* slot = static_cast<SharedSlot*>(returned);
  std::shared_ptr<SendSlots> last;  // destroyed outside the lock
  MutexLock lock(mu_);
  slot->held = false;
  ++counters_.slots_returned;
  counters_.bytes_lent -= static_cast<int64_t>(slot->segment->layout.slot_bytes());
  --held_;
  if (!slot->at_client) PutFree(*slot);
  if (closed_ && held_ == 0) last = std::move(self_);
}

void SendSlots::RemoveFromFree(const Segment& segment) {
  const auto list = free_.find(segment.layout.body_bytes);
  if (list == free_.end()) return;
  list->second.RemoveIf([&](const SharedSlot& slot) { return slot.segment == &segment; });
}

std::vector<uint32_t> SendSlots::TakeIdle(size_t bytes) {
  std::vector<std::unique_ptr<Segment>> gone;  // unmapped outside the lock
  std::vector<uint32_t> numbers;
  MutexLock lock(mu_);
  size_t idle = 0;
  for (auto at = segments_.begin(); at != segments_.end();) {
    const Segment& segment = *at->second;
    const bool serves = segment.layout.body_bytes >= bytes &&
                        segment.layout.body_bytes / 2 <= std::max(bytes, kFrameBelow);
    const bool is_idle = segment.free == segment.layout.slots;
    if (is_idle && !serves) idle += segment.layout.bytes();
    const bool goes =
        is_idle && !serves && (idle > kKeptIdle || segment.layout.body_bytes > kLargestKept);
    if (!goes) {
      ++at;
      continue;
    }
    RemoveFromFree(segment);
    counters_.bytes_reserved -= static_cast<int64_t>(segment.layout.bytes());
    numbers.push_back(at->first);
    gone.push_back(std::move(at->second));
    at = segments_.erase(at);
  }
  return numbers;
}

void SendSlots::Close() {
  MutexLock lock(mu_);
  if (std::exchange(closed_, true)) return;
  if (held_ > 0) self_ = shared_from_this();
}

PoolCounters SendSlots::counters() const {
  return {.segments_allocated = counters_.segments_allocated,
          .slots_lent = counters_.slots_lent,
          .slots_returned = counters_.slots_returned,
          .bytes_reserved = counters_.bytes_reserved,
          .bytes_lent = counters_.bytes_lent};
}

}  // namespace penstock::transfer::shm
