// SPDX-License-Identifier: Apache-2.0
#include "bench/workloads/lengths.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace penstock::bench {

uint64_t Mix(uint64_t number) {
  number += 0x9E3779B97F4A7C15;
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EB;
  return number ^ (number >> 31);
}

int64_t LengthOf(int64_t number) {
  const auto draw = [number](uint64_t which) {  // (0, 1]
    const uint64_t mixed = Mix(2 * static_cast<uint64_t>(number) + which);
    return static_cast<double>((mixed >> 11) + 1) * 0x1p-53;
  };
  const double normal =
      std::sqrt(-2 * std::log(draw(0))) * std::cos(2 * std::numbers::pi * draw(1));
  return std::clamp<int64_t>(std::llround(std::exp(5 + normal)), 16, 1024);
}

}  // namespace penstock::bench
