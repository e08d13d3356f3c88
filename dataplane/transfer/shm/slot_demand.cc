// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/shm/slot_demand.h"

#include <algorithm>

#include "dataplane/element/block.h"
#include "dataplane/memory/free_slots.h"
#include "dataplane/transfer/message.h"

namespace penstock::transfer::shm {
namespace {

// A segment may have this many times the bytes that this release would use for the requested slots,
// because a different release may round up differently.
constexpr size_t kAskedSlack = 2;

// A segment has few large slots. The client is asked for more segments until it has made as many
// slots as may be in use, or until it reaches one of these bounds.
constexpr uint64_t kAtFirst = 8;
constexpr size_t kAtFirstBytes = size_t{128} << 20;
// If no slot was free for blocks of some size, the link asks for more slots: at most
// kMostAsksOnMiss times per size, each time for at most kMostOnMiss missing slots and kSpareOnMiss
// spare slots. Each time, a node that reads ahead thus gets further.
constexpr int kMostAsksOnMiss = 8;
constexpr uint64_t kMostOnMiss = 16;
constexpr uint64_t kSpareOnMiss = 2;

}  // namespace

void SlotDemand::NoteCredits(int64_t credits) {
  most_credits_ = std::max(most_credits_, static_cast<uint64_t>(credits));
}

// Blocks in other memory are copied into slots as soon as slots are returned. The next blocks then
// find no free slot either, and so on, until there are more slots.
void SlotDemand::AskForMissed(const Sent& sent) {
  const uint64_t missed = slots_.TakeMissed();
  if (missed == 0 || !sent.element || asked_.has_value()) return;
  if (slots_.counters().segments_allocated == 0) return;  // this element will ask for the first
  const HeadPrefix prefix = PrefixOf(sent.element.block().data());
  if (prefix.head_bytes > kHeadRoom || prefix.head_bytes + prefix.body_bytes < kFrameBelow) return;
  int& asks = asks_on_miss_[LayoutFor(prefix.body_bytes, 1).body_bytes];
  if (asks >= kMostAsksOnMiss) return;
  ++asks;
  AskForWanted({WordKind::kElement, prefix.body_bytes},
               std::min(missed, kMostOnMiss) + kSpareOnMiss);
}

void SlotDemand::Ask(const SlotRoom& room, size_t queued) {
  if (asked_.has_value()) return;
  // The number of slots that may be sent before one must return, plus a few that are read
  // meanwhile; but at least RestBytes() in total, so that each slot can rest (free_slots.h).
  const uint64_t in_use = room.kind == WordKind::kFrame
                              ? 4  // they return immediately
                              : std::max<uint64_t>(queued, most_credits_) + 3;
  const size_t slot_bytes = LayoutFor(room.bytes, 1).body_bytes;
  AskForWanted(room, std::max<uint64_t>(in_use, RestBytes() / slot_bytes));
}

void SlotDemand::AskForWanted(const SlotRoom& room, uint64_t wanted) {
  for (uint32_t number : slots_.TakeIdle(room.bytes)) {
    socket_.Send(PacketKind::kRetire, number).IgnoreError();  // the socket reports its end
  }
  const size_t slot_bytes = LayoutFor(room.bytes, 1).body_bytes;
  const uint64_t at_once = LayoutFor(room.bytes, wanted).slots;
  const uint64_t at_first = std::min<uint64_t>(kAtFirst, kAtFirstBytes / slot_bytes);
  AskFor(room, std::max(at_once, std::min(at_first, wanted)));
}

void SlotDemand::AskForRest(const Asked& asked, uint64_t made) {
  if (!asked_.has_value() && asked.slots > made) AskFor(asked.room, asked.slots - made);
}

void SlotDemand::AskFor(const SlotRoom& room, uint64_t slots) {
  // A client that does not read its socket is asked again by the next message that finds no slot.
  if (!socket_.Send(PacketKind::kNeed, room.bytes, slots).ok()) return;
  asked_ = {room, slots, kAskedSlack * LayoutFor(room.bytes, slots).bytes()};
}

}  // namespace penstock::transfer::shm
