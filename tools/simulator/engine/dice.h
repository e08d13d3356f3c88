// SPDX-License-Identifier: Apache-2.0
// Random numbers from a seed. The same numbers on every machine and with every standard library.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace penstock::simulator {

// A duration that is drawn between two bounds.
struct Span {
  absl::Duration low;
  absl::Duration high;
};

// A generator (SplitMix64). Used on one thread.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}

  uint64_t Next();
  // Returns a number ≥ `low` and ≤ `high`. REQUIRES: low <= high.
  int64_t Between(int64_t low, int64_t high);
  bool OneIn(int64_t n) { return Between(1, n) == 1; }
  bool WithChance(double chance);  // 0: never; 1: always
  absl::Duration Draw(const Span& span);
  // Returns a generator of its own, whose numbers do not depend on how this one is used later.
  Dice Split() { return Dice(Next()); }

 private:
  uint64_t state_;
};

}  // namespace penstock::simulator
