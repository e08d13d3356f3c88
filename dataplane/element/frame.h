// SPDX-License-Identifier: Apache-2.0
// Frames: several small elements in one slot, after one prefix, so that a link moves all of them at
// the cost of a single element (docs/element.md, "Frames").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/element.h"
#include "penstock/loan.h"
#include "penstock/spec.h"

#pragma GCC visibility push(default)
namespace penstock {

inline constexpr uint32_t kFrameMagic = 0x31465350;  // "PSF1", little endian
inline constexpr uint16_t kFrameVersion = 1;

// Blocks of fewer bytes than this go into frames. Every other block gets a slot of its own, which
// costs less than a copy into a frame.
inline constexpr size_t kFrameBelow = 64 << 10;

struct FramePrefix {
  uint32_t magic;
  uint16_t version;
  uint16_t flags;  // 0
  uint32_t block_count;
  uint32_t reserved;     // 0
  uint64_t frame_bytes;  // includes this prefix; a multiple of 64
  uint64_t padding[5];   // 0
};
static_assert(sizeof(FramePrefix) == 64, "fixed in docs/element.md");

// Packs blocks into the caller's memory. One thread only.
class FrameWriter {
 public:
  // REQUIRES: `memory` is 64-byte aligned and at least as large as the prefix.
  explicit FrameWriter(absl::Span<std::byte> memory);

  // Returns the memory into which the caller writes one more block of `block_bytes`. Empty if the
  // block does not fit; the frame is then unchanged. REQUIRES: `block_bytes` is a multiple of 64.
  absl::Span<std::byte> Open(size_t block_bytes);
  // Copies a whole block into the frame; returns false if the block does not fit.
  bool Append(absl::Span<const std::byte> block);

  size_t count() const { return count_; }
  size_t bytes() const { return used_; }
  // Writes the prefix and returns the frame's bytes. Afterwards more blocks may be added, and
  // Seal() called again.
  absl::Span<std::byte> Seal();

 private:
  absl::Span<std::byte> memory_;
  size_t used_ = sizeof(FramePrefix);
  size_t count_ = 0;
};

// Reads the elements of an untrusted frame. One thread only.
class FrameReader {
 public:
  // Opens the frame in the first `bytes` of the loan. Returns DataLoss naming a wrong field, or
  // FailedPrecondition for a version that this release does not read.
  static absl::StatusOr<FrameReader> Open(Loan loan, size_t bytes, Spec spec);

  // Returns the next element, after CheckBlock() has accepted it. The element shares the frame's
  // loan, and is therefore read-only. Returns nullopt after the last element and after an error.
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
#pragma GCC visibility pop
