// SPDX-License-Identifier: Apache-2.0
// A queue of words from one process to another in shared memory: one side writes, the other reads.
// Neither side trusts the memory: an impossible number is detected and does no harm.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace penstock::transfer::shm {

// Two cache lines: x86 fetches lines in pairs, and neither side should stall on a line that the
// other side writes.
inline constexpr size_t kApart = 128;  // bytes

inline constexpr size_t kRingWords = 1024;  // a power of two

// In shared memory. The writer sets `written`, the reader sets `read`.
struct RingMemory {
  alignas(kApart) std::atomic<uint64_t> written;  // number of words so far
  alignas(kApart) std::atomic<uint64_t> read;     // number of words so far
  alignas(kApart) std::atomic<uint64_t> words[kRingWords];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "a lock would not be shared");

// One thread at a time.
class RingWriter {
 public:
  explicit RingWriter(RingMemory& ring) : ring_(ring) {}

  // Returns false if the ring is full.
  bool Write(uint64_t word) {
    if (next_ - read_ >= kRingWords) read_ = ring_.read.load(std::memory_order_seq_cst);
    // True also if the reader's number is impossible.
    if (next_ - read_ >= kRingWords) return false;
    ring_.words[next_ % kRingWords].store(word, std::memory_order_relaxed);
    // seq_cst: visible before the writer loads the reader's flag (channel.h).
    ring_.written.store(++next_, std::memory_order_seq_cst);
    return true;
  }

 private:
  RingMemory& ring_;
  uint64_t next_ = 0;
  uint64_t read_ = 0;  // as last seen
};

// One thread at a time.
class RingReader {
 public:
  explicit RingReader(RingMemory& ring) : ring_(ring) {}

  bool empty() {
    if (next_ == written_) written_ = ring_.written.load(std::memory_order_seq_cst);
    return next_ == written_;
  }
  enum class Found { kWord, kNothing, kNonsense };
  // `word` is set only for kWord.
  Found Read(uint64_t& word) {
    if (empty()) return Found::kNothing;
    if (written_ - next_ > kRingWords) return Found::kNonsense;
    word = ring_.words[next_ % kRingWords].load(std::memory_order_relaxed);
    ring_.read.store(++next_, std::memory_order_seq_cst);
    return Found::kWord;
  }

 private:
  RingMemory& ring_;
  uint64_t next_ = 0;
  uint64_t written_ = 0;  // as last seen
};

}  // namespace penstock::transfer::shm
