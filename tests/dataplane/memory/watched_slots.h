// SPDX-License-Identifier: Apache-2.0
// Slots that check, when they are returned, whether a device still reads them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "dataplane/element/block.h"
#include "penstock/element.h"
#include "tests/dataplane/memory/fake_device.h"

namespace penstock {

// Acts like a pool that lends a returned slot again at once: a returned slot is overwritten. One
// element per slot: `values` uint8 and one string. Any thread.
class WatchedSlots final : public SlotOwner {
 public:
  static constexpr size_t kBytes = 4096;

  WatchedSlots(FakeDevice& device, int count, int64_t values)
      : device_(device), values_(values), slots_(count) {
    for (Place& place : slots_) {
      place.slot.data = place.memory.data();
      place.slot.bytes = kBytes;
      place.slot.owner = this;
    }
  }

  static Spec ElementSpec() {
    return Spec::Dict({{"image", Dense(kUInt8, {kUnknownDim})}, {"name", Scalar(kString)}});
  }

  // Returns an element in a free slot whose bytes are all `value`; empty if no slot is free.
  Element Fill(uint8_t value) {
    std::lock_guard lock(mu_);
    for (Place& place : slots_) {
      if (place.lent) continue;
      place.lent = true;
      place.slot.holders.store(1);
      const int64_t dims[] = {values_};
      const std::vector<uint8_t> image(values_, value);
      const std::string name = "element";
      const uint64_t offsets[] = {0, name.size()};
      const Tensor tensors[] = {Tensor(kUInt8, dims, image.data()),
                                Tensor(kString, {}, offsets, name.data())};
      const BlockLayout layout = LayoutOf(tensors).value();
      BlockWriter writer(layout, absl::MakeSpan(place.memory), ElementSpec());
      writer.Copy(0, tensors[0]);
      writer.Copy(1, tensors[1]);
      return Element(Loan(&place.slot), place.memory.data(), ElementSpec());
    }
    return Element();
  }

  void TakeBack(Slot* slot) noexcept override {
    std::lock_guard lock(mu_);
    if (device_.Touches(slot->data, slot->bytes)) ++too_early_;
    std::memset(slot->data, 0xDD, slot->bytes);
    for (Place& place : slots_) {
      if (&place.slot == slot) place.lent = false;
    }
  }

  int lent() const {
    std::lock_guard lock(mu_);
    int lent = 0;
    for (const Place& place : slots_) lent += place.lent;
    return lent;
  }
  // Returns how many slots were returned with an unfinished copy from them.
  int too_early() const {
    std::lock_guard lock(mu_);
    return too_early_;
  }

 private:
  struct Place {
    Slot slot;
    alignas(64) std::array<std::byte, kBytes> memory;
    bool lent = false;
  };
  FakeDevice& device_;
  const int64_t values_;
  mutable std::mutex mu_;  // guards the next two
  std::vector<Place> slots_;
  int too_early_ = 0;
};

}  // namespace penstock
