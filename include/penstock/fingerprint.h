// SPDX-License-Identifier: Apache-2.0
// A hash function with the same results on every machine and in every release: FNV-1a, 64 bits
// (Fowler, Noll, Vo; www.isthe.com/chongo/tech/comp/fnv). A hash identifies data, but does not
// protect against forgery.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

#pragma GCC visibility push(default)
namespace penstock {

inline constexpr uint64_t kFingerprintSeed = 0xcbf29ce484222325;  // FNV's offset basis

// Returns the hash of `bytes`. To hash several pieces, pass the hash of each piece as the seed for
// the next.
constexpr uint64_t Fingerprint(absl::string_view bytes, uint64_t seed = kFingerprintSeed) {
  for (char byte : bytes) {
    seed ^= static_cast<uint8_t>(byte);
    seed *= 0x100000001b3;  // FNV's prime
  }
  return seed;
}

// Returns the hash of a number, as its eight bytes, lowest first.
constexpr uint64_t Fingerprint(uint64_t number, uint64_t seed = kFingerprintSeed) {
  for (int i = 0; i < 8; ++i) {
    seed ^= (number >> (8 * i)) & 0xff;
    seed *= 0x100000001b3;
  }
  return seed;
}

}  // namespace penstock
#pragma GCC visibility pop
