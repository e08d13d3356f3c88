// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/shm/receive_slots.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "include/status_macros.h"

namespace penstock::transfer::shm {
namespace {

static_assert(kMaxSlots <= 1u << kSlotInSegmentBits);

}  // namespace

ReceiveSlots::~ReceiveSlots() = default;

absl::StatusOr<ReceiveSlots::NewSegment> ReceiveSlots::Add(uint64_t bytes, uint64_t count) {
  Segment segment;
  segment.layout = LayoutFor(bytes, count);
  ASSIGN_OR_RETURN(segment.memory, SharedSegment::Create(segment.layout.bytes()));
  ASSIGN_OR_RETURN(segment.view, SlotView::Map(segment.memory.fd(), segment.layout));
  segment.page_lock = page_locking_.LockOnceInUse(segment.view.memory());

  MutexLock lock(mu_);
  uint32_t number = 0;
  while (segments_.contains(number)) ++number;
  if (number >= kMaxSegments) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a link has at most ", kMaxSegments, " shared segments"));
  }
  const NewSegment added{number, segment.layout, segment.memory.fd()};
  Insert(number, std::move(segment));
  return added;
}

absl::Status ReceiveSlots::Adopt(uint64_t number, uint64_t slots, uint64_t body_bytes,
                                 const Descriptor& descriptor, Descriptor hold) {
  if (number >= kMaxSegments || !IsPossible(slots, body_bytes)) {
    return absl::DataLossError("the worker's shared segment has an invalid layout");
  }
  Segment segment;
  segment.layout = {.slots = static_cast<uint32_t>(slots), .body_bytes = body_bytes};
  absl::StatusOr<SharedSegment> memory =
      SharedSegment::Open(descriptor, segment.layout.bytes(), SharedSegment::Writers::kOwner);
  if (absl::IsInvalidArgument(memory.status())) {
    return absl::DataLossError(memory.status().message());
  }
  RETURN_IF_ERROR(memory.status());
  segment.memory = *std::move(memory);
  ASSIGN_OR_RETURN(segment.view, SlotView::MapPrivate(descriptor, segment.layout));
  MutexLock lock(mu_);
  const auto its = static_cast<uint32_t>(number);
  if (segments_.contains(its)) {
    return absl::DataLossError(
        absl::StrCat("the worker announced its shared segment ", number, " twice"));
  }
  Insert(its, std::move(segment));
  hold_ = std::move(hold);
  return absl::OkStatus();
}

void ReceiveSlots::Insert(uint32_t number, Segment segment) {
  Segment& its = segments_.emplace(number, std::move(segment)).first->second;
  its.slots = std::make_unique<SharedSlot[]>(its.layout.slots);
  for (uint32_t i = 0; i < its.layout.slots; ++i) {
    SharedSlot& slot = its.slots[i];
    slot.data = its.view.body(i) - kHeadRoom;
    slot.bytes = its.layout.slot_bytes();
    slot.owner = this;
    slot.number = number << kSlotInSegmentBits | i;
    if (its.view.is_private()) slot.drop_written = &its.view;
  }
}

absl::Status ReceiveSlots::Retire(uint64_t number) {
  Segment retired;  // unmapped outside the lock
  MutexLock lock(mu_);
  auto found =
      number < kMaxSegments ? segments_.find(static_cast<uint32_t>(number)) : segments_.end();
  if (found == segments_.end() || found->second.here > 0) {
    return absl::DataLossError(
        absl::StrCat("the worker released the shared segment ", number, ", which ",
                     found == segments_.end() ? "does not exist" : "is still being read"));
  }
  retired = std::move(found->second);
  segments_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<ReceiveSlots::Arrived> ReceiveSlots::Arrive(const SlotWord& word) {
  const uint32_t in_segment = word.slot & ((1u << kSlotInSegmentBits) - 1);
  MutexLock lock(mu_);
  auto found = segments_.find(word.slot >> kSlotInSegmentBits);
  if (closed_ || found == segments_.end() || in_segment >= found->second.layout.slots) {
    return absl::DataLossError(
        absl::StrCat("the worker sent the shared slot ", word.slot, ", which does not exist"));
  }
  Segment& segment = found->second;
  SharedSlot& slot = segment.slots[in_segment];
  if (slot.here || slot.generation != word.generation) {
    return absl::DataLossError(absl::StrCat("the worker sent the shared slot ", word.slot,
                                            " of generation ", word.generation, ", which is ",
                                            slot.here ? "being read" : "not the current one"));
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
  if (!in_creator_) return;  // the slot is the parent's
  auto* slot = static_cast<SharedSlot*>(returned);
  if (slot->drop_written != nullptr) {
    slot->drop_written->DropWritten(slot->number & ((1u << kSlotInSegmentBits) - 1));
  }
  std::shared_ptr<ReceiveSlots> last;  // destroyed outside the lock
  MutexLock lock(mu_);
  const SlotWord word{.slot = slot->number, .generation = slot->generation};
  slot->generation = (slot->generation + 1) & kGenerationMask;
  slot->here = false;
  --segments_.at(slot->number >> kSlotInSegmentBits).here;
  --here_;
  if (closed_) {
    if (here_ > 0) return;
    LetGoOfHold();
    last = std::move(self_);
    return;
  }
  channel_->Send(Pack(given_back_, word));
}

void ReceiveSlots::Close() {
  MutexLock lock(mu_);
  if (std::exchange(closed_, true)) return;
  if (here_ > 0) {
    self_ = shared_from_this();
  } else {
    LetGoOfHold();
  }
}

void ReceiveSlots::LetGoOfHold() {
  if (!hold_) return;
  ::shutdown(hold_.get(), SHUT_RDWR);  // works even if a forked child also has it
  hold_.Reset();
}

}  // namespace penstock::transfer::shm
