// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/shm/receive_slots.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/element/block.h"
#include "dataplane/memory/heap_pool.h"
#include "penstock/status.h"

namespace penstock::transfer {
namespace {

constexpr size_t kSmallestBody = 64 << 10;    // bytes; smaller elements come in frames
constexpr size_t kLargestSegment = 64 << 20;  // bytes, if it is not for one slot
constexpr uint32_t kMaxSlots = 1024;          // of one segment
constexpr uint32_t kMaxSegments = 1u << (kSlotNumberBits - kSlotInSegmentBits);
static_assert(kMaxSlots <= 1u << kSlotInSegmentBits);

// Room for a block of `bytes`, whether its head goes before the body's place or not.
size_t BodyBytesFor(size_t bytes) {
  const int size_class = HeapPool::ClassOf(std::max(bytes, kSmallestBody));
  return AlignUp(size_class < HeapPool::kClasses ? HeapPool::ClassBytes(size_class) : bytes,
                 kPageBytes);
}

}  // namespace

ReceiveSlots::~ReceiveSlots() = default;

absl::StatusOr<ReceiveSlots::NewSegment> ReceiveSlots::Add(uint64_t bytes, uint64_t count) {
  Segment segment;
  segment.layout.body_bytes = BodyBytesFor(bytes);
  const size_t fit = std::max<size_t>(kLargestSegment / segment.layout.slot_bytes(), 1);
  segment.layout.slots =
      static_cast<uint32_t>(std::clamp<uint64_t>(count, 1, std::min<uint64_t>(fit, kMaxSlots)));
  ASSIGN_OR_RETURN(segment.memory, SharedSegment::Create(segment.layout.bytes()));
  ASSIGN_OR_RETURN(segment.view, ReaderView::Map(segment.memory, segment.layout));
  segment.locked = page_locking_.Lock(segment.view.memory());
  segment.slots = std::make_unique<SharedSlot[]>(segment.layout.slots);

  std::lock_guard lock(mu_);
  uint32_t number = 0;
  while (segments_.contains(number)) ++number;
  if (number >= kMaxSegments) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a link has at most ", kMaxSegments, " shared segments"));
  }
  for (uint32_t i = 0; i < segment.layout.slots; ++i) {
    SharedSlot& slot = segment.slots[i];
    slot.data = segment.view.body(i) - kHeadRoom;
    slot.bytes = segment.layout.slot_bytes();
    slot.owner = this;
    slot.number = number << kSlotInSegmentBits | i;
  }
  const NewSegment added{number, segment.layout, segment.memory.fd()};
  segments_.emplace(number, std::move(segment));
  return added;
}

absl::Status ReceiveSlots::Retire(uint64_t number) {
  Segment retired;  // unmapped outside the lock
  std::lock_guard lock(mu_);
  auto found =
      number < kMaxSegments ? segments_.find(static_cast<uint32_t>(number)) : segments_.end();
  if (found == segments_.end() || found->second.here > 0) {
    return absl::DataLossError(
        absl::StrCat("the worker let go of the shared segment ", number, ", which ",
                     found == segments_.end() ? "is not there" : "is being read"));
  }
  retired = std::move(found->second);
  segments_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<ReceiveSlots::Arrived> ReceiveSlots::Arrive(const SlotWord& word) {
  const uint32_t in_segment = word.slot & ((1u << kSlotInSegmentBits) - 1);
  std::lock_guard lock(mu_);
  auto found = segments_.find(word.slot >> kSlotInSegmentBits);
  if (closed_ || found == segments_.end() || in_segment >= found->second.layout.slots) {
    return absl::DataLossError(
        absl::StrCat("the worker gave away the shared slot ", word.slot, ", which is not there"));
  }
  Segment& segment = found->second;
  SharedSlot& slot = segment.slots[in_segment];
  if (slot.here || slot.generation != word.generation) {
    return absl::DataLossError(absl::StrCat("the worker gave away the shared slot ", word.slot,
                                            " of generation ", word.generation, ", which is ",
                                            slot.here ? "being read" : "not the present one"));
  }
  slot.here = true;
  ++segment.here;
  ++here_;
  slot.holders.store(1, std::memory_order_relaxed);
  return Arrived{.loan = Loan(&slot),
                 .shared = segment.memory.memory().data() + segment.layout.body_offset(in_segment),
                 .body = segment.view.body(in_segment),
                 .body_bytes = segment.layout.body_bytes};
}

void ReceiveSlots::TakeBack(Slot* returned) noexcept {
  if (!made_here_) return;  // it is the parent's
  auto* slot = static_cast<SharedSlot*>(returned);
  std::shared_ptr<ReceiveSlots> last;  // let go of outside the lock
  std::lock_guard lock(mu_);
  const SlotWord word{.slot = slot->number, .generation = slot->generation};
  slot->generation = (slot->generation + 1) & kGenerationMask;
  slot->here = false;
  --segments_.at(slot->number >> kSlotInSegmentBits).here;
  --here_;
  if (closed_) {
    if (here_ == 0) last = std::move(self_);
    return;
  }
  channel_->Send(Pack(WordKind::kReturn, word));
}

void ReceiveSlots::Close() {
  std::lock_guard lock(mu_);
  if (std::exchange(closed_, true)) return;
  if (here_ > 0) self_ = shared_from_this();
}

}  // namespace penstock::transfer
