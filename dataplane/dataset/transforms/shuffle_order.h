// SPDX-License-Identifier: Apache-2.0
// The order in which a shuffle buffer gives elements out, as numbers alone:
// each output is drawn from those in the buffer by a counter-based generator,
// so that the order is known from (key, size, number of inputs) at any point.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "dataplane/dataset/function.h"

namespace penstock {

// The buffer is a row of slots, each with the number of one input. Input i goes
// out no later than as output i + 3 · size, whatever is drawn: an element stays
// for at most 4 · size outputs, and what is in the buffer are inputs from
// OldestPossible() on.
class ShuffleOrder {
 public:
  // `key.element` will be the output's number.
  ShuffleOrder(const RandomKey& key, int64_t size) : key_(key), size_(size) {}

  int64_t inputs() const { return inputs_; }    // put in so far
  int64_t outputs() const { return outputs_; }  // taken out so far
  bool Full() const { return static_cast<int64_t>(slots_.size()) == size_ && empty_ < 0; }
  bool Empty() const { return slots_.empty() || (slots_.size() == 1 && empty_ == 0); }

  // Puts the next input in; returns its slot. REQUIRES: !Full().
  size_t Put();
  // Draws the next output and returns its slot, whose place is free then. If
  // Put() is not called before the next Take(), the last slot moves there: see
  // Compact(). REQUIRES: !Empty(), no free place.
  size_t Take();
  // If there is a free place, moves the last slot's input there and returns
  // true; `from` and `to` are the slots.
  bool Compact(size_t& from, size_t& to);

  // Plays the first `outputs` steps of a shuffle of which `inputs` were read.
  // False if no run comes to that point. REQUIRES: new.
  bool PlayTo(int64_t outputs, int64_t inputs);

  // Numbers of the inputs in the slots; that of a free place is void.
  absl::Span<const int64_t> slots() const { return slots_; }
  int64_t free_place() const { return empty_; }  // -1: none
  // No input below this is in the buffer.
  int64_t OldestPossible() const { return outputs_ <= 3 * size_ ? 0 : outputs_ - 3 * size_; }

 private:
  void Place(size_t slot, int64_t input);

  RandomKey key_;
  const int64_t size_;
  int64_t inputs_ = 0;
  int64_t outputs_ = 0;
  int64_t empty_ = -1;
  std::vector<int64_t> slots_;
  // Slot of input i at i modulo 4 · size; -1 once it is out. Grows as inputs come.
  std::vector<int64_t> slot_of_;
};

}  // namespace penstock
