// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/shuffle_order.h"

#include "penstock/check.h"

namespace penstock {

void ShuffleOrder::Place(size_t slot, int64_t input) {
  slots_[slot] = input;
  slot_of_[input % (4 * size_)] = static_cast<int64_t>(slot);
}

size_t ShuffleOrder::Put() {
  PENSTOCK_CHECK(!Full());
  size_t slot = static_cast<size_t>(empty_);
  if (empty_ < 0) {
    slot = slots_.size();
    slots_.push_back(0);
  }
  empty_ = -1;
  if (inputs_ < 4 * size_) slot_of_.push_back(0);
  Place(slot, inputs_++);
  return slot;
}

size_t ShuffleOrder::Take() {
  PENSTOCK_CHECK(!slots_.empty() && empty_ < 0);
  key_.element = static_cast<uint64_t>(outputs_);
  // The high half of the product of 64 random bits and n is uniform below n.
  const auto drawn = static_cast<unsigned __int128>(RandomBits(key_, 0)) * slots_.size();
  size_t slot = static_cast<size_t>(drawn >> 64);
  if (const int64_t due = outputs_ - 3 * size_; due >= 0) {
    const int64_t late = slot_of_[due % (4 * size_)];
    if (late >= 0) slot = static_cast<size_t>(late);
  }
  slot_of_[slots_[slot] % (4 * size_)] = -1;
  empty_ = static_cast<int64_t>(slot);
  ++outputs_;
  return slot;
}

bool ShuffleOrder::Compact(size_t& from, size_t& to) {
  if (empty_ < 0) return false;
  from = slots_.size() - 1;
  to = static_cast<size_t>(empty_);
  if (from != to) Place(to, slots_[from]);
  slots_.pop_back();
  empty_ = -1;
  return true;
}

bool ShuffleOrder::PlayTo(int64_t outputs, int64_t inputs) {
  size_t from, to;
  while (outputs_ < outputs) {
    while (!Full() && inputs_ < inputs) Put();
    Compact(from, to);
    if (Empty()) return false;
    Take();
  }
  while (!Full() && inputs_ < inputs) Put();
  return inputs_ == inputs;
}

}  // namespace penstock
