// SPDX-License-Identifier: Apache-2.0
// A hash that is the same in each process and in each release, for decisions that must not change
// when the dispatcher is restarted.
#pragma once

#include <cstdint>

namespace penstock::control {

// A step of SplitMix64 (Steele, Lea, Flood 2014).
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace penstock::control
