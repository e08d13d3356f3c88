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

// The buffer is a row of slots, each with the number of one input. Three outputs
// of four come from a slot drawn at random; the fourth from the slot whose turn
// it is, so that within 4 · size outputs each slot has its turn. Which slot that
// is depends on the output's number alone as long as the buffer is full: so an
// element stays for at most 4 · size outputs, and the buffer at any point is
// known from the 4 · size outputs before it, wherever that point lies. The
// first inputs are put in at random slots, so that turns favour none of them.
class ShuffleOrder {
 public:
  // `key.element` will be the output's number, or the input's.
  ShuffleOrder(const RandomKey& key, int64_t size) : key_(key), size_(size) {}

  int64_t inputs() const { return inputs_; }    // put in so far
  int64_t outputs() const { return outputs_; }  // taken out so far
  bool Full() const { return used() == size_; }
  bool Empty() const { return used() == 0; }
  // Whether more came out than can before the input ends.
  bool Ended() const { return outputs_ > 0 && used() < size_ - 1; }

  // Puts the next input in; returns its slot: the one emptied last, or else, while
  // slots are being added, any, whose input goes to the slot that was added.
  // REQUIRES: !Full(), !Ended().
  size_t Put();
  // Empties the slot that the next output comes from, and returns it. Without Put()
  // before the next Take(), the input has ended. REQUIRES: !Empty().
  size_t Take();
  int64_t taken() const { return taken_; }  // number of the input that was in the last one's slot

  // Comes to where `outputs` were taken of which `inputs` were read, in at most
  // 6 · size steps. False if no run comes to that point. REQUIRES: new.
  bool PlayTo(int64_t outputs, int64_t inputs);

  // Numbers of the inputs in the slots; kEmpty where there is none.
  absl::Span<const int64_t> slots() const { return slots_; }
  static constexpr int64_t kEmpty = -1;
  // No input below this is in the buffer.
  int64_t OldestPossible() const { return outputs_ < 4 * size_ ? 0 : outputs_ - 3 * size_; }

 private:
  int64_t used() const { return inputs_ - outputs_; }
  int64_t Below(int64_t bound, int64_t element, uint32_t draw);  // uniform of [0, bound)
  // The slot of output `output` if the buffer is full then.
  int64_t SlotOfFull(int64_t output);
  // The slot whose turn it is; -1: the output is drawn.
  int64_t Turn(int64_t output) const;
  // Draws among the slots in use once the input has ended.
  int64_t SlotOfRest();

  RandomKey key_;
  const int64_t size_;
  int64_t inputs_ = 0;
  int64_t outputs_ = 0;
  int64_t taken_ = kEmpty;
  int64_t emptied_ = -1;        // the slot of the last Take(), while nothing was put there
  std::vector<int64_t> slots_;  // grow to `size`
  // Once the input has ended: the slots in use, and where in that row each stands.
  std::vector<int64_t> rest_;
  std::vector<int64_t> place_in_rest_;
};

}  // namespace penstock
