// SPDX-License-Identifier: Apache-2.0
// Slots in shared memory, written by one process and read by another.
//
// A slot has room for a head and, from a page boundary on, for a body. The writer
// lays an element's block across that boundary, so that its head ends where the
// body begins. The reader has the same bodies in its mapping, but each behind a
// page of its own in the head's place: it copies the head there, checks the copy,
// and then has a whole block of which the writer can change no offset any more.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "dataplane/memory/shared_segment.h"

namespace penstock {

// Larger heads (many strings, long ragged rows) lie with their body in its room.
inline constexpr size_t kHeadRoom = kPageBytes;

struct SlotLayout {
  uint32_t slots = 0;
  size_t body_bytes = 0;  // a multiple of kPageBytes

  size_t slot_bytes() const { return kHeadRoom + body_bytes; }
  size_t bytes() const { return slots * slot_bytes(); }
  // Where a slot's body begins in the segment.
  size_t body_offset(uint32_t slot) const { return slot * slot_bytes() + kHeadRoom; }
};

// The reader's mapping. Takes two of the process's mappings per slot.
class ReaderView {
 public:
  ReaderView() = default;
  ReaderView(ReaderView&& other) noexcept;
  ReaderView& operator=(ReaderView&& other) noexcept;
  ~ReaderView();

  // ResourceExhausted if the process has too many mappings (vm.max_map_count).
  static absl::StatusOr<ReaderView> Map(const SharedSegment& segment, const SlotLayout& layout);

  // All of it.
  absl::Span<std::byte> memory() const { return memory_; }
  // Where that slot's body begins; the kHeadRoom bytes before are private.
  std::byte* body(uint32_t slot) const { return memory_.data() + layout_.body_offset(slot); }

 private:
  void Unmap();
  MadeHere here_;
  absl::Span<std::byte> memory_;
  SlotLayout layout_;
};

}  // namespace penstock
