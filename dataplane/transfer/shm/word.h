// SPDX-License-Identifier: Apache-2.0
// The words that the two sides of a link exchange through its rings. One 64-bit word is one
// message, so that a message is read once, as a whole, and then checked.
//
//   bits 60–63  the kind (WordKind)
//   a slot:     32–59 its number, 12–31 its generation, 0–11 head bytes / 64
//   a count:    0–59
#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock::transfer::shm {

// Numbers are never reused for a different word.
enum class WordKind : uint8_t {
  // Worker to client. A slot that is now the client's:
  kElement = 1,   // the body in its place, and the head before that place
  kBlock = 2,     // head and body in the body's place: the head is too large to precede it
  kFrame = 3,     // a frame in the body's place
  kError = 4,     // the block of an error in the body's place
  kRecalled = 5,  // this many credits are returned unused
  kShared = 6,    // same as kElement, but in a segment of the worker, which the client only reads
  // Same as kElement, but the worker copied the block into the slot, because:
  kCopiedNoSlot = 7,       // no slot was free when the element was made
  kCopiedForAnother = 13,  // the element was made in the memory of a different client
  kCopiedElsewhere = 14,   // the element was made in the memory of a node that keeps elements
  // Client to worker.
  kReturn = 8,         // the worker has the slot again
  kReceived = 9,       // this many of the oldest elements were received
  kGranted = 10,       // this many more elements may be sent
  kRecall = 11,        // asks for the unused credits
  kReturnShared = 12,  // one of the worker's slots, which the client no longer reads
};

inline constexpr uint32_t kSlotNumberBits = 28;  // including 16 for the slot in its segment
inline constexpr uint32_t kSlotInSegmentBits = 16;
inline constexpr uint32_t kMaxSegments = 1u << (kSlotNumberBits - kSlotInSegmentBits);
inline constexpr uint32_t kGenerationMask = (1u << 20) - 1;
inline constexpr int64_t kMaxCount = (int64_t{1} << 60) - 1;
inline constexpr uint32_t kHeadUnit = 64;  // bytes

// A slot's number on its link (slots of the worker's segments are numbered separately), the number
// of times that the slot has changed sides (so that a stale word is recognized), and the size of
// the head before the body.
struct SlotWord {
  uint32_t slot = 0;
  uint32_t generation = 0;
  uint32_t head_bytes = 0;
};

inline uint64_t Pack(WordKind kind, const SlotWord& word) {
  return uint64_t{static_cast<uint8_t>(kind)} << 60 | uint64_t{word.slot} << 32 |
         uint64_t{word.generation & kGenerationMask} << 12 | word.head_bytes / kHeadUnit;
}
// A count above kMaxCount is packed as kMaxCount.
inline uint64_t Pack(WordKind kind, int64_t count) {
  return uint64_t{static_cast<uint8_t>(kind)} << 60 |
         static_cast<uint64_t>(std::min(count, kMaxCount));
}

// May return an unknown kind: words are untrusted.
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

}  // namespace penstock::transfer::shm
