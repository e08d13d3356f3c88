// SPDX-License-Identifier: Apache-2.0
// Slots in shared memory, written by one process and read by others.
//
// A slot has room for a head and, from a page boundary on, for a body. An element's
// block lies across that boundary, so that its head ends where the body begins. A
// process that does not trust the others has the same bodies in a view of its own,
// each behind a private page in the head's place. A reader copies the head there,
// checks the copy, and then has a whole block of which the writer can change no offset
// any more. A writer makes the head there and copies it into the segment when the
// block is done: whatever others write into the segment, it writes nowhere else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "dataplane/memory/shared_segment.h"

namespace penstock {

// Larger heads (many strings, long ragged rows) lie with their body in its room.
inline constexpr size_t kHeadRoom = kPageBytes;

inline constexpr uint32_t kMaxSlots = 1024;  // of one segment

struct SlotLayout {
  uint32_t slots = 0;
  size_t body_bytes = 0;  // a multiple of kPageBytes

  size_t slot_bytes() const { return kHeadRoom + body_bytes; }
  size_t bytes() const { return slots * slot_bytes(); }
  // Where a slot's body begins in the segment.
  size_t body_offset(uint32_t slot) const { return slot * slot_bytes() + kHeadRoom; }
};
// Of a segment with slots for bodies of `bytes`: `count` of them, or as many as a segment takes.
SlotLayout LayoutFor(size_t bytes, uint64_t count);
// Whether there may be such a segment. For layouts that another process names.
bool IsPossible(uint64_t slots, uint64_t body_bytes);

// A process's own mapping of the slots. In a forked child it is not there.
class SlotView {
 public:
  SlotView() = default;
  SlotView(SlotView&& other) noexcept;
  SlotView& operator=(SlotView&& other) noexcept;
  ~SlotView();

  // What is written into a body, others see. Takes two of the process's mappings per slot, and
  // some 10 µs for a megabyte. ResourceExhausted if it has too many (vm.max_map_count).
  // REQUIRES: `segment` is of layout.bytes(), all of which is there (SharedSegment).
  static absl::StatusOr<SlotView> Map(int segment, const SlotLayout& layout);
  // Of another process's, whose size was checked (SharedSegment::Open), for reading: pages that
  // are written to become this process's own, until DropWritten(). A page is mapped when it is
  // first read, with its neighbours. ResourceExhausted if there is no room to map it.
  static absl::StatusOr<SlotView> MapPrivate(const Descriptor& segment, const SlotLayout& layout);
  bool is_private() const { return private_; }

  // All of it.
  absl::Span<std::byte> memory() const { return memory_; }
  // Where that slot's body begins; the kHeadRoom bytes before are private.
  std::byte* body(uint32_t slot) const { return memory_.data() + layout_.body_offset(slot); }
  // Lets go of what this process wrote into that body: it is the other's again. Some
  // microseconds for a megabyte. REQUIRES: is_private().
  void DropWritten(uint32_t slot) const;

 private:
  void Unmap();
  ForkGuard in_creator_;
  absl::Span<std::byte> memory_;
  SlotLayout layout_;
  bool private_ = false;
};

}  // namespace penstock
