// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011.
#include "dataplane/dataset/expr/random.h"

#include "dataplane/dataset/expr/function.h"

namespace penstock {
namespace {

// SplitMix64's finaliser: every bit of the input changes about half of the bits of the output.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

uint64_t RandomBits(const RandomKey& key, uint32_t draw) {
  // Seed, repetition and partition have more bits than Philox's key. They are mixed one after
  // another, so that small changes to two of them do not cancel out.
  const uint64_t mixed =
      Mix(Mix(Mix(key.seed + 0x9E3779B97F4A7C15u) + key.repetition) + key.partition);
  const auto bits = Philox4x32({static_cast<uint32_t>(key.element),
                                static_cast<uint32_t>(key.element >> 32), key.node, draw},
                               {static_cast<uint32_t>(mixed), static_cast<uint32_t>(mixed >> 32)});
  return uint64_t{bits[1]} << 32 | bits[0];
}

double RandomUnit(const RandomKey& key, uint32_t draw) {
  return static_cast<double>(RandomBits(key, draw) >> 11) * 0x1p-53;
}

RandomKey KeyOfOp(const RandomKey& key, int64_t number) {
  RandomKey own = key;
  own.node += static_cast<uint32_t>(number) * 0x9E3779B9u;
  return own;
}

}  // namespace penstock
