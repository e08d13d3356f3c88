// SPDX-License-Identifier: Apache-2.0
// Free slots of one size. Memory that one core has written and another core has read stays in the
// caches of both cores. Writing to that memory then costs twice as much, because each line is
// fetched from the other core. Such a slot therefore rests until RestBytes() of other slots have
// been used. All other slots are reused as soon as possible: last in, first out.
#pragma once

#include <cstddef>

namespace penstock {

// Returns the number of bytes of other slots that displace a slot's lines from a core's own caches:
// twice the size of the core's level-2 cache.
size_t RestBytes();

// `Slot` has a member `Slot* next_free`, which this list uses while the slot is in it. Not
// thread-safe.
template <class Slot>
class FreeSlots {
 public:
  FreeSlots() = default;  // for slots that never rest
  // For slots of `slot_bytes` bytes each.
  explicit FreeSlots(size_t slot_bytes)
      : most_resting_((RestBytes() + slot_bytes - 1) / slot_bytes) {}
  FreeSlots(const FreeSlots&) = delete;
  FreeSlots& operator=(const FreeSlots&) = delete;

  void Put(Slot& slot) {
    slot.next_free = rested_;
    rested_ = &slot;
  }
  // Adds a slot that another core has used.
  void Rest(Slot& slot) {
    slot.next_free = nullptr;
    *last_link_ = &slot;
    last_link_ = &slot.next_free;
    if (++resting_ > most_resting_) Put(*TakeResting());
  }

  // Takes a slot that has rested; nullptr if there is none.
  Slot* Take() {
    if (resting_ > 0 && resting_ == most_resting_) return TakeResting();
    Slot* const slot = rested_;
    if (slot != nullptr) rested_ = slot->next_free;
    return slot;
  }
  // Takes a rested slot or, if there is none, the slot that has rested longest; nullptr if the list
  // is empty.
  Slot* TakeAny() {
    Slot* const slot = Take();
    return slot != nullptr ? slot : TakeResting();
  }

  // Removes all slots for which `unwanted` is true.
  template <class Predicate>
  void RemoveIf(Predicate unwanted) {
    for (Slot** link = &rested_; *link != nullptr;) {
      if (unwanted(**link)) {
        *link = (*link)->next_free;
      } else {
        link = &(*link)->next_free;
      }
    }
    Slot* slot = first_;
    first_ = nullptr;
    last_link_ = &first_;
    resting_ = 0;
    while (slot != nullptr) {
      Slot* const next = slot->next_free;
      if (!unwanted(*slot)) Rest(*slot);
      slot = next;
    }
  }

 private:
  Slot* TakeResting() {
    Slot* const slot = first_;
    if (slot == nullptr) return nullptr;
    first_ = slot->next_free;
    if (first_ == nullptr) last_link_ = &first_;
    --resting_;
    return slot;
  }

  const size_t most_resting_ = 0;
  // The resting slots; the one that has rested longest is first.
  Slot* first_ = nullptr;
  Slot** last_link_ = &first_;
  size_t resting_ = 0;
  Slot* rested_ = nullptr;  // all other slots, last in, first out
};

}  // namespace penstock
