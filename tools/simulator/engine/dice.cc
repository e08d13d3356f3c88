// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/engine/dice.h"

#include "absl/numeric/int128.h"

namespace penstock::simulator {

uint64_t Dice::Next() {
  uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

// Scales a number below 2^64 to a number below `range`, which is faster than a remainder. The
// numbers are unequally likely by at most range / 2^64.
int64_t Dice::Between(int64_t low, int64_t high) {
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  const uint64_t next = Next();
  const uint64_t offset = range == 0 ? next : absl::Uint128High64(absl::uint128(next) * range);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + offset);
}

bool Dice::WithChance(double chance) {
  constexpr double kUnit = 1.0 / (uint64_t{1} << 53);  // a double has 53 significant bits
  return kUnit * static_cast<double>(Next() >> 11) < chance;
}

absl::Duration Dice::Draw(const Span& span) {
  return span.low + absl::Nanoseconds(Between(0, absl::ToInt64Nanoseconds(span.high - span.low)));
}

}  // namespace penstock::simulator
