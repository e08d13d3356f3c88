// SPDX-License-Identifier: Apache-2.0
// Free slots of one size. What one core wrote and another read stays in the caches of both for a
// while, and to write there costs twice as much as to write elsewhere: each line has to be fetched
// from the other core. So such a slot rests until slots of some MiB were used. All others come
// back as fast as can be: the last one that was put here is the first to be taken.
#pragma once

#include <cstddef>

namespace penstock {

// How many bytes of other slots take a slot's lines out of a core's own caches: twice its level 2.
size_t RestBytes();

// `Slot` has a member `Slot* next_free`, which is this list's while the slot is here. Not
// thread-safe.
template <class Slot>
class FreeSlots {
 public:
  FreeSlots() = default;  // where none rests
  // For slots of `slot_bytes` bytes each.
  explicit FreeSlots(size_t slot_bytes)
      : most_resting_((RestBytes() + slot_bytes - 1) / slot_bytes) {}
  FreeSlots(const FreeSlots&) = delete;
  FreeSlots& operator=(const FreeSlots&) = delete;

  void Put(Slot& slot) {
    slot.next_free = rested_;
    rested_ = &slot;
  }
  // One that another core has used.
  void Rest(Slot& slot) {
    slot.next_free = nullptr;
    *last_link_ = &slot;
    last_link_ = &slot.next_free;
    if (++resting_ > most_resting_) Put(*TakeResting());
  }

  // One that has rested; nullptr if there is none.
  Slot* Take() {
    if (resting_ > 0 && resting_ == most_resting_) return TakeResting();
    Slot* const slot = rested_;
    if (slot != nullptr) rested_ = slot->next_free;
    return slot;
  }
  // The one that has rested longest, if none has rested enough; nullptr if there is none.
  Slot* TakeAny() {
    Slot* const slot = Take();
    return slot != nullptr ? slot : TakeResting();
  }

  // Takes out all for which `unwanted` is true.
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
  // The resting, the one first that has rested longest.
  Slot* first_ = nullptr;
  Slot** last_link_ = &first_;
  size_t resting_ = 0;
  Slot* rested_ = nullptr;  // all others, the last one that came first
};

}  // namespace penstock
