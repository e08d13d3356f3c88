// SPDX-License-Identifier: Apache-2.0
// Frames: several small elements in one slot, behind one prefix, so that a link
// moves them at the price of one (docs/element.md, "Frames").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/element.h"
#include "penstock/loan.h"
#include "penstock/spec.h"

namespace penstock {

inline constexpr uint32_t kFrameMagic = 0x31465350;  // "PSF1", little endian
inline constexpr uint16_t kFrameVersion = 1;

// Blocks below this many bytes go into frames; above it a slot of their own
// costs less than the copy.
inline constexpr size_t kFrameBelow = 64 << 10;

struct FramePrefix {
  uint32_t magic;
  uint16_t version;
  uint16_t flags;  // 0
  uint32_t block_count;
  uint32_t reserved;     // 0
  uint64_t frame_bytes;  // with this prefix; a multiple of 64
  uint64_t padding[5];   // 0
};
static_assert(sizeof(FramePrefix) == 64, "fixed in docs/element.md");

// Packs blocks into memory of the caller's. One thread.
class FrameWriter {
 public:
  // REQUIRES: memory is 64 B aligned and takes at least the prefix.
  explicit FrameWriter(absl::Span<std::byte> memory);

  // Room for one more block of that size, to be written in place; empty if it
  // does not fit, and the frame is then as it was. REQUIRES: a multiple of 64.
  absl::Span<std::byte> Open(size_t block_bytes);
  // Copies a whole block; false if it does not fit.
  bool Append(absl::Span<const std::byte> block);

  size_t count() const { return count_; }
  size_t bytes() const { return used_; }
  // Writes the prefix; the frame's bytes. More may be added and sealed again.
  absl::Span<std::byte> Seal();

 private:
  absl::Span<std::byte> memory_;
  size_t used_ = sizeof(FramePrefix);
  size_t count_ = 0;
};

// Yields the elements of a frame that came from outside. One thread.
class FrameReader {
 public:
  // The frame in the first `bytes` of the loan. DataLoss names the field that
  // is wrong, FailedPrecondition a version this release does not read.
  static absl::StatusOr<FrameReader> Open(Loan loan, size_t bytes, Spec spec);

  // The next element, checked as by CheckBlock; it shares the frame's loan and
  // so is read-only. nullopt behind the last, and after an error.
  absl::StatusOr<std::optional<Element>> Next();

 private:
  FrameReader(Loan loan, size_t bytes, size_t blocks, Spec spec)
      : loan_(std::move(loan)), bytes_(bytes), left_(blocks), spec_(std::move(spec)) {}
  Loan loan_;
  size_t bytes_;
  size_t left_;  // blocks
  size_t at_ = sizeof(FramePrefix);
  Spec spec_;
};

}  // namespace penstock
