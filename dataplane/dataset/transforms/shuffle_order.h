// SPDX-License-Identifier: Apache-2.0
// The order in which a shuffle buffer returns its elements, as numbers only. A counter-based
// generator draws each output from the buffer, so the order at any point follows from the key, the
// size and the number of inputs.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "dataplane/dataset/expr/function.h"

namespace penstock {

// The buffer is an array of slots. Each slot has the number of one input. Of every four outputs,
// three come from slots drawn at random. The fourth comes from the slots in rotation, so each slot
// is emptied within 4 · size outputs. While the buffer is full, the slot depends only on the
// output's number. An element therefore stays for at most 4 · size outputs, and the buffer at any
// point follows from the 4 · size outputs before it. The first inputs are put into random slots, so
// that the rotation favours none of them.
class ShuffleOrder {
 public:
  // `key.element` is set to the number of the output or of the input.
  ShuffleOrder(const RandomKey& key, int64_t size) : key_(key), size_(size) {}

  int64_t inputs() const { return inputs_; }    // put in so far
  int64_t outputs() const { return outputs_; }  // taken out so far
  bool Full() const { return used() == size_; }
  bool Empty() const { return used() == 0; }
  // True if more outputs were taken than is possible before the input ends.
  bool Ended() const { return outputs_ > 0 && used() < size_ - 1; }

  // Puts the next input in and returns its slot. This is the slot that was emptied last or, while
  // slots are still being added, a slot drawn at random, whose input moves to the added slot.
  // REQUIRES: !Full(), !Ended().
  size_t Put();
  // Empties the slot of the next output and returns it. If Put() is not called before the next
  // Take(), the input has ended. REQUIRES: !Empty().
  size_t Take();
  int64_t taken() const { return taken_; }  // number of the input that the last Take() took out

  // Moves to the point at which `inputs` elements have been put in and `outputs` elements taken
  // out, in at most 6 · size steps. False if no run reaches that point. REQUIRES: newly
  // constructed.
  bool PlayTo(int64_t outputs, int64_t inputs);

  // The numbers of the inputs in the slots; kEmpty for an empty slot.
  absl::Span<const int64_t> slots() const { return slots_; }
  static constexpr int64_t kEmpty = -1;
  // No input below this number is in the buffer.
  int64_t OldestPossible() const { return outputs_ < 4 * size_ ? 0 : outputs_ - 3 * size_; }

 private:
  int64_t used() const { return inputs_ - outputs_; }
  int64_t Below(int64_t bound, int64_t element, uint32_t draw);  // uniform in [0, bound)
  // The slot of output `output` if the buffer is full at that point.
  int64_t SlotOfFull(int64_t output);
  // The slot of an output that comes from the rotation; -1 if the output is drawn.
  int64_t Turn(int64_t output) const;
  // Draws from the slots in use after the input has ended.
  int64_t SlotOfRest();

  RandomKey key_;
  const int64_t size_;
  int64_t inputs_ = 0;
  int64_t outputs_ = 0;
  int64_t taken_ = kEmpty;
  int64_t emptied_ = -1;        // slot of the last Take(), until it is filled
  std::vector<int64_t> slots_;  // grows to `size_`
  // After the input has ended: the slots in use, and the index of each slot in that list.
  std::vector<int64_t> rest_;
  std::vector<int64_t> place_in_rest_;
};

}  // namespace penstock
