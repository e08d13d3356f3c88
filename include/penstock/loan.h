// SPDX-License-Identifier: Apache-2.0
// The right to use a slot. A slot returns to its owner when its last holder is destroyed.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

#include "absl/types/span.h"

#pragma GCC visibility push(default)
namespace penstock {

struct Slot;

// The lender of slots. Must live until all slots that it lent have been returned.
class SlotOwner {
 public:
  // Takes back a slot. Called once, when the slot's last holder is destroyed. Any thread; must not
  // wait.
  virtual void TakeBack(Slot* slot) noexcept = 0;

 protected:
  ~SlotOwner() = default;
};

// A part of a segment, for one element or one frame. Belongs to its owner. Constant while lent,
// except for the bytes themselves and the count of holders.
struct Slot {
  std::byte* data = nullptr;  // aligned to 64 bytes
  size_t bytes = 0;
  SlotOwner* owner = nullptr;
  std::atomic<int> holders{0};
};

// A holder of a slot. Moving passes the holder on; Share() makes another holder of the same slot.
class Loan {
 public:
  Loan() = default;
  // Becomes a holder of a slot whose count of holders already includes this one.
  explicit Loan(Slot* slot) : slot_(slot) {}
  Loan(Loan&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
  Loan& operator=(Loan&& other) noexcept {
    if (this != &other) {
      Return();
      slot_ = std::exchange(other.slot_, nullptr);
    }
    return *this;
  }
  ~Loan() { Return(); }

  Loan Share() const {
    if (slot_ != nullptr) slot_->holders.fetch_add(1, std::memory_order_relaxed);
    return Loan(slot_);
  }
  bool IsShared() const {
    return slot_ != nullptr && slot_->holders.load(std::memory_order_acquire) > 1;
  }
  explicit operator bool() const { return slot_ != nullptr; }
  const SlotOwner* owner() const { return slot_ == nullptr ? nullptr : slot_->owner; }
  absl::Span<std::byte> bytes() const {
    return slot_ == nullptr ? absl::Span<std::byte>() : absl::MakeSpan(slot_->data, slot_->bytes);
  }

 private:
  void Return() noexcept {
    if (slot_ != nullptr && slot_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1)
      slot_->owner->TakeBack(slot_);
    slot_ = nullptr;
  }
  Slot* slot_ = nullptr;
};

}  // namespace penstock
#pragma GCC visibility pop
