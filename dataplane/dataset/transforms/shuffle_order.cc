// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/shuffle_order.h"

#include <algorithm>
#include <utility>

#include "penstock/check.h"

namespace penstock {
namespace {

constexpr int64_t kTurnEach = 4;  // outputs
// Kinds of draws: for an output, and for an input while the buffer fills.
constexpr uint32_t kOutput = 0;
constexpr uint32_t kInput = 1;

}  // namespace

int64_t ShuffleOrder::Below(int64_t bound, int64_t element, uint32_t draw) {
  key_.element = static_cast<uint64_t>(element);
  // The high half of the product of 64 random bits and n is uniform below n.
  const auto drawn =
      static_cast<unsigned __int128>(RandomBits(key_, draw)) * static_cast<uint64_t>(bound);
  return static_cast<int64_t>(drawn >> 64);
}

int64_t ShuffleOrder::Turn(int64_t output) const {
  return output % kTurnEach == kTurnEach - 1 ? output / kTurnEach % size_ : -1;
}

int64_t ShuffleOrder::SlotOfFull(int64_t output) {
  const int64_t turn = Turn(output);
  return turn >= 0 ? turn : Below(size_, output, kOutput);
}

int64_t ShuffleOrder::SlotOfRest() {
  if (rest_.empty()) {
    place_in_rest_.resize(slots_.size());
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      if (slots_[slot] == kEmpty) continue;
      place_in_rest_[slot] = static_cast<int64_t>(rest_.size());
      rest_.push_back(static_cast<int64_t>(slot));
    }
  }
  int64_t slot = Turn(outputs_);
  if (slot < 0 || slot >= static_cast<int64_t>(slots_.size()) || slots_[slot] == kEmpty)
    slot = rest_[Below(static_cast<int64_t>(rest_.size()), outputs_, kOutput)];
  place_in_rest_[rest_.back()] = place_in_rest_[slot];
  rest_[place_in_rest_[slot]] = rest_.back();
  rest_.pop_back();
  return slot;
}

size_t ShuffleOrder::Put() {
  PENSTOCK_CHECK(!Full() && !Ended());
  int64_t slot = emptied_;
  if (slot < 0) {
    slot = Below(inputs_ + 1, inputs_, kInput);
    slots_.push_back(inputs_);
    std::swap(slots_[slot], slots_.back());
  }
  slots_[slot] = inputs_++;
  emptied_ = -1;
  return static_cast<size_t>(slot);
}

size_t ShuffleOrder::Take() {
  PENSTOCK_CHECK(!Empty());
  const int64_t slot = Full() ? SlotOfFull(outputs_) : SlotOfRest();
  taken_ = std::exchange(slots_[slot], kEmpty);
  emptied_ = slot;
  ++outputs_;
  return static_cast<size_t>(slot);
}

bool ShuffleOrder::PlayTo(int64_t outputs, int64_t inputs) {
  if (outputs > inputs || inputs - outputs > size_) return false;
  // The number of outputs that were taken while the buffer was full.
  const int64_t full = std::clamp<int64_t>(inputs - size_ + 1, 0, outputs);
  outputs_ = full - kTurnEach * size_;
  if (outputs_ <= 0) {
    outputs_ = 0;
    while (!Full() && inputs_ < inputs) Put();
  } else {
    slots_.resize(size_, kEmpty);
    inputs_ = outputs_ + size_;
  }
  // From here on each slot is emptied at least once, so its earlier contents do not matter.
  while (outputs_ < full) {
    emptied_ = SlotOfFull(outputs_++);
    slots_[emptied_] = kEmpty;
    if (inputs_ < inputs) Put();
  }
  while (outputs_ < outputs) Take();
  return true;
}

}  // namespace penstock
