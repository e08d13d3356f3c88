// SPDX-License-Identifier: Apache-2.0
// Slots in shared memory, written by one process and read by others.
//
// A slot has space for a head and, from a page boundary on, for a body. An element's block crosses
// that boundary: its head ends where the body begins. A process that does not trust the other
// processes maps the bodies into a view of its own, in which a private page takes the place of each
// head. A reader copies the head to that page and checks the copy. The reader then has a complete
// block whose offsets the writer can no longer change. A writer makes the head in the private page
// and copies it into the segment when the block is done. Whatever other processes write into the
// segment, the writer never writes outside it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "dataplane/memory/shared_segment.h"

namespace penstock {

// The space for a head. A larger head (many strings, long ragged rows) is written into the space
// for the body, before the body.
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
// Returns the layout of a segment with slots for bodies of `bytes`: `count` slots, or as many as
// fit in a segment.
SlotLayout LayoutFor(size_t bytes, uint64_t count);
// Returns true if a segment with this layout is possible. Call it for layouts received from another
// process.
bool IsPossible(uint64_t slots, uint64_t body_bytes);

// A process's own mapping of a segment's slots. Not mapped in a forked child.
class SlotView {
 public:
  SlotView() = default;
  SlotView(SlotView&& other) noexcept;
  SlotView& operator=(SlotView&& other) noexcept;
  ~SlotView();

  // Maps the slots; other processes see data that is written into a body. Takes two of the
  // process's mappings per slot, and about 10 µs per megabyte. ResourceExhausted if the process has
  // too many mappings (vm.max_map_count). REQUIRES: `segment` has layout.bytes(), all of which are
  // present (SharedSegment).
  static absl::StatusOr<SlotView> Map(int segment, const SlotLayout& layout);
  // Maps another process's segment for reading. The segment's size must have been checked
  // (SharedSegment::Open). Pages to which this process writes become its own until DropWritten(). A
  // page is mapped, together with its neighbours, when it is first read. ResourceExhausted if the
  // segment cannot be mapped.
  static absl::StatusOr<SlotView> MapPrivate(const Descriptor& segment, const SlotLayout& layout);
  bool is_private() const { return private_; }

  // The whole mapping.
  absl::Span<std::byte> memory() const { return memory_; }
  // Returns the address at which the slot's body begins. With Map(), the kHeadRoom bytes before it
  // are private.
  std::byte* body(uint32_t slot) const { return memory_.data() + layout_.body_offset(slot); }
  // Drops the pages that this process wrote in the slot's body, so that the body shows the other
  // process's data again. Takes microseconds per megabyte. REQUIRES: is_private().
  void DropWritten(uint32_t slot) const;

 private:
  void Unmap();
  ForkGuard in_creator_;
  absl::Span<std::byte> memory_;
  SlotLayout layout_;
  bool private_ = false;
};

}  // namespace penstock
