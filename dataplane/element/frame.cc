// SPDX-License-Identifier: Apache-2.0
#include "dataplane/element/frame.h"

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "dataplane/element/block.h"
#include "penstock/check.h"
#include "penstock/status.h"

namespace penstock {
namespace {

absl::Status BadFrame(const char* field) {
  return absl::DataLossError(absl::StrCat("a frame of elements is damaged: ", field));
}

}  // namespace

FrameWriter::FrameWriter(absl::Span<std::byte> memory) : memory_(memory) {
  PENSTOCK_CHECK(memory.size() >= sizeof(FramePrefix));
  PENSTOCK_CHECK(reinterpret_cast<uintptr_t>(memory.data()) % kBlockAlignment == 0);
}

absl::Span<std::byte> FrameWriter::Open(size_t block_bytes) {
  PENSTOCK_CHECK(block_bytes % kBlockAlignment == 0);
  if (block_bytes > memory_.size() - used_) return {};
  const absl::Span<std::byte> room = memory_.subspan(used_, block_bytes);
  used_ += block_bytes;
  ++count_;
  return room;
}

bool FrameWriter::Append(absl::Span<const std::byte> block) {
  const absl::Span<std::byte> room = Open(block.size());
  if (room.empty()) return false;
  std::memcpy(room.data(), block.data(), block.size());
  return true;
}

absl::Span<std::byte> FrameWriter::Seal() {
  FramePrefix prefix = {};
  prefix.magic = kFrameMagic;
  prefix.version = kFrameVersion;
  prefix.block_count = static_cast<uint32_t>(count_);
  prefix.frame_bytes = used_;
  std::memcpy(memory_.data(), &prefix, sizeof(prefix));
  return memory_.subspan(0, used_);
}

absl::StatusOr<FrameReader> FrameReader::Open(Loan loan, size_t bytes, Spec spec) {
  if (bytes > loan.bytes().size() || bytes < sizeof(FramePrefix))
    return BadFrame("it ends within its prefix");
  FramePrefix prefix;
  std::memcpy(&prefix, loan.bytes().data(), sizeof(prefix));
  if (prefix.magic != kFrameMagic) return BadFrame("its magic number is wrong");
  if (prefix.version != kFrameVersion) {
    return absl::FailedPreconditionError(absl::StrCat("a frame of elements has version ",
                                                      prefix.version, "; this release reads ",
                                                      kFrameVersion));
  }
  if (prefix.frame_bytes % kBlockAlignment != 0 || prefix.frame_bytes > bytes ||
      prefix.frame_bytes < sizeof(FramePrefix))
    return BadFrame("frame_bytes is invalid");
  return FrameReader(std::move(loan), prefix.frame_bytes, prefix.block_count, std::move(spec));
}

absl::StatusOr<std::optional<Element>> FrameReader::Next() {
  if (left_ == 0) {
    if (at_ == bytes_) return std::nullopt;
    at_ = bytes_;
    return BadFrame("it has bytes after its last block");
  }
  std::byte* block = loan_.bytes().data() + at_;
  absl::StatusOr<size_t> size = CheckBlock(absl::MakeConstSpan(block, bytes_ - at_), spec_);
  if (!size.ok()) {
    const absl::Status status = Annotate(size.status(), "at byte ", at_, " of its frame");
    left_ = 0;
    at_ = bytes_;
    return status;
  }
  at_ += *size;
  --left_;
  return Element(loan_.Share(), block, spec_);
}

}  // namespace penstock
