// SPDX-License-Identifier: Apache-2.0
// The work that both sides of T1 do: copy from a cold source, sum at the reader.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace bench {

// 512 MiB of pseudo-random bytes, walked in a circle, so that what is copied is
// never in a cache.
class ColdSource {
 public:
  explicit ColdSource(size_t bytes = 512u << 20) : words_(bytes / 8) {
    uint64_t x = 88172645463325252u;
    for (uint64_t& word : words_) word = x ^= x << 13, x ^= x >> 7, x ^= x << 17;
  }

  // Fills `slot` from the next place and stamps its first and last word.
  void Fill(std::span<std::byte> slot, uint64_t number) {
    const size_t length = words_.size() * 8;
    size_t at = at_.fetch_add(slot.size(), std::memory_order_relaxed) % length;
    for (size_t done = 0; done < slot.size();) {
      const size_t part = std::min(slot.size() - done, length - at);
      std::memcpy(slot.data() + done, reinterpret_cast<const std::byte*>(words_.data()) + at, part);
      done += part;
      at = 0;
    }
    std::memcpy(slot.data(), &number, 8);
    std::memcpy(slot.data() + slot.size() - 8, &number, 8);
  }

 private:
  std::vector<uint64_t> words_;
  std::atomic<size_t> at_{0};
};

// Reads every byte; the sum keeps the compiler from leaving it out.
inline uint64_t SumOf(std::span<const std::byte> bytes) {
  const auto* words = reinterpret_cast<const uint64_t*>(bytes.data());
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes.size() / 8; ++i) sum += words[i];
  return sum;
}

// Whether the stamps say `number`.
inline bool IsStamped(std::span<const std::byte> bytes, uint64_t number) {
  uint64_t first, last;
  std::memcpy(&first, bytes.data(), 8);
  std::memcpy(&last, bytes.data() + bytes.size() - 8, 8);
  return first == number && last == number;
}

}  // namespace bench
