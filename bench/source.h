// SPDX-License-Identifier: Apache-2.0
// The work of both sides of a pair: copy from a source into a slot at one end, read the slot at the
// other end.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace penstock::bench {

// A source of this size is in no cache when it is read again.
inline constexpr int64_t kColdBytes = int64_t{512} << 20;

// The values of a source's words.
enum class Words : uint8_t {
  kRandom,  // incompressible
  kSmall,   // 8 random bits each, like pixels widened to int64: compressible
};

// Pseudo-random words that are copied cyclically. A source of an element's size is a buffer that is
// made once.
class Source {
 public:
  explicit Source(size_t bytes, Words words = Words::kRandom) : words_((bytes + 7) / 8) {
    uint64_t x = 88172645463325252u;
    for (uint64_t& word : words_) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      word = words == Words::kSmall ? x & 0xff : x;
    }
  }

  // Fills `slot` from the next place and stamps `number` at both ends. Thread-safe. REQUIRES:
  // slot.size() ≥ 8.
  void Fill(std::span<std::byte> slot, uint64_t number) {
    Copy(slot);
    std::memcpy(slot.data(), &number, 8);
    std::memcpy(slot.data() + slot.size() - 8, &number, 8);
  }

 private:
  void Copy(std::span<std::byte> slot) {
    const size_t length = words_.size() * 8;
    size_t at = at_.fetch_add(slot.size(), std::memory_order_relaxed) % length;
    for (size_t done = 0; done < slot.size();) {
      const size_t part = std::min(slot.size() - done, length - at);
      std::memcpy(slot.data() + done, reinterpret_cast<const std::byte*>(words_.data()) + at, part);
      done += part;
      at = 0;
    }
  }

  std::vector<uint64_t> words_;
  std::atomic<size_t> at_{0};
};

enum class Touch : uint8_t {
  kEveryByte,  // all bytes are summed
  kEveryPage,  // one byte in 4 KiB is summed
};

// Reads the bytes. The sum keeps the compiler from leaving out the reads.
inline uint64_t SumOf(std::span<const std::byte> bytes, Touch touch) {
  uint64_t sum = 0;
  if (touch == Touch::kEveryPage) {
    for (size_t i = 0; i < bytes.size(); i += 4096) sum += static_cast<uint64_t>(bytes[i]);
    return sum;
  }
  const auto* words = reinterpret_cast<const uint64_t*>(bytes.data());
  // Without unrolling, the loop is a quarter slower if a cache line of code ends inside it.
#pragma GCC unroll 8
  for (size_t i = 0; i < bytes.size() / 8; ++i) sum += words[i];
  return sum;
}

// Returns whether both stamps are `number`.
inline bool IsStamped(std::span<const std::byte> bytes, uint64_t number) {
  uint64_t first = 0, last = 0;
  if (bytes.size() < 8) return false;
  std::memcpy(&first, bytes.data(), 8);
  std::memcpy(&last, bytes.data() + bytes.size() - 8, 8);
  return first == number && last == number;
}

}  // namespace penstock::bench
