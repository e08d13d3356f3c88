// SPDX-License-Identifier: Apache-2.0
// What the two sides of a link tell each other through its rings: one 64-bit word
// a thing, so that it is read once, whole, and then checked.
//
//   bits 60–63  what it says (WordKind)
//   a slot:     32–59 its number, 12–31 its generation, 0–11 head bytes / 64
//   a count:    0–59
#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock::transfer {

// Never used again for another word.
enum class WordKind : uint8_t {
  // Worker to client. A slot that is now the client's:
  kElement = 1,   // head before the body's place, body in it
  kBlock = 2,     // head and body in the body's place: the head is too large to go before
  kFrame = 3,     // a frame in the body's place
  kError = 4,     // the block of an error in the body's place
  kRecalled = 5,  // so many credits come back unused
  kShared = 6,    // as kElement, in a segment of the worker's, which the client reads only
  // As kElement, and the worker copied it there, since:
  kCopiedNoSlot = 7,       // no slot was free when it was made
  kCopiedForAnother = 13,  // it was made in memory of another client
  kCopiedElsewhere = 14,   // it was made in memory of a node that holds elements
  // Client to worker.
  kReturn = 8,         // a slot that is the worker's again
  kReceived = 9,       // so many of the oldest were received
  kGranted = 10,       // so many more may be sent
  kRecall = 11,        // credits not used are wanted back
  kReturnShared = 12,  // a slot of the worker's that the client reads no more
};

inline constexpr uint32_t kSlotNumberBits = 28;  // of it 16 for the slot in its segment
inline constexpr uint32_t kSlotInSegmentBits = 16;
inline constexpr uint32_t kMaxSegments = 1u << (kSlotNumberBits - kSlotInSegmentBits);
inline constexpr uint32_t kGenerationMask = (1u << 20) - 1;
inline constexpr int64_t kMaxCount = (int64_t{1} << 60) - 1;
inline constexpr uint32_t kHeadUnit = 64;  // bytes

// A slot's number on its link (those of the worker's segments are numbered for themselves), how
// often it has changed sides (so that a word of an earlier time is known for one), and the size of
// the head before its body.
struct SlotWord {
  uint32_t slot = 0;
  uint32_t generation = 0;
  uint32_t head_bytes = 0;
};

inline uint64_t Pack(WordKind kind, const SlotWord& word) {
  return uint64_t{static_cast<uint8_t>(kind)} << 60 | uint64_t{word.slot} << 32 |
         uint64_t{word.generation & kGenerationMask} << 12 | word.head_bytes / kHeadUnit;
}
// More than kMaxCount is said as kMaxCount.
inline uint64_t Pack(WordKind kind, int64_t count) {
  return uint64_t{static_cast<uint8_t>(kind)} << 60 |
         static_cast<uint64_t>(std::min(count, kMaxCount));
}

// May be no kind at all: words come from outside.
inline WordKind KindOf(uint64_t word) {
  return static_cast<WordKind>(word >> 60);
}
inline SlotWord SlotOf(uint64_t word) {
  return {.slot = static_cast<uint32_t>(word >> 32) & ((1u << kSlotNumberBits) - 1),
          .generation = static_cast<uint32_t>(word >> 12) & kGenerationMask,
          .head_bytes = (static_cast<uint32_t>(word) & 0xfff) * kHeadUnit};
}
inline int64_t CountOf(uint64_t word) {
  return static_cast<int64_t>(word & static_cast<uint64_t>(kMaxCount));
}

}  // namespace penstock::transfer
