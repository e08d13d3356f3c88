// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "dataplane/element/block.h"
#include "dataplane/element/copy_bytes.h"
#include "penstock/check.h"

namespace penstock {
namespace {

LeafEntry& EntryOf(std::byte* block, size_t i) {
  PENSTOCK_CHECK(i < PrefixOf(block).leaf_count);
  return reinterpret_cast<LeafEntry*>(block + sizeof(HeadPrefix))[i];
}

std::byte* BodyOf(std::byte* block) {
  return block + PrefixOf(block).head_bytes;
}

int64_t* DimsOf(std::byte* block, const LeafEntry& entry) {
  return reinterpret_cast<int64_t*>(block + entry.shape_offset);
}

int64_t EntryCount(std::byte* block, const LeafEntry& entry) {
  int64_t count = 1;
  for (int d = 0; d < entry.rank; ++d) count *= DimsOf(block, entry)[d];
  return count;
}

uint64_t* StringOffsets(std::byte* block, const LeafEntry& entry) {
  return reinterpret_cast<uint64_t*>(block + entry.data_offset);
}

// Returns the memory for the bytes of the strings, after the strings' offsets.
absl::Span<char> StringBytes(std::byte* block, const LeafEntry& entry) {
  const size_t offsets = (EntryCount(block, entry) + 1) * sizeof(uint64_t);
  return absl::Span<char>(reinterpret_cast<char*>(block) + entry.data_offset + offsets,
                          entry.data_bytes - offsets);
}

void ZeroPadding(std::byte* from, size_t used, size_t alignment) {
  std::memset(from + used, 0, AlignUp(used, alignment) - used);
}

}  // namespace

BlockWriter::BlockWriter(const BlockLayout& layout, absl::Span<std::byte> memory, const Spec& spec)
    : block_(memory.data()) {
  PENSTOCK_CHECK(memory.size() >= layout.bytes());
  PENSTOCK_CHECK(reinterpret_cast<uintptr_t>(block_) % kBlockAlignment == 0);
  HeadPrefix prefix = {};
  prefix.magic = kBlockMagic;
  prefix.version = kBlockVersion;
  prefix.head_bytes = static_cast<uint32_t>(layout.head_bytes());
  prefix.leaf_count = static_cast<uint32_t>(layout.size());
  prefix.body_bytes = layout.body_bytes();
  prefix.structure = spec.structure_fingerprint();
  prefix.round = -1;
  prefix.consumer = -1;
  prefix.extension_bytes = static_cast<uint32_t>(layout.extension_bytes());
  std::memcpy(block_, &prefix, sizeof(prefix));
  CopyBytes(block_ + sizeof(prefix), layout.image_.data(), layout.image_.size() * sizeof(uint64_t));
  std::memset(block_ + layout.used_head_bytes_, 0, layout.head_bytes() - layout.used_head_bytes_);
  for (const LeafEntry& entry : TableOf(block_)) {
    if (entry.dtype != static_cast<uint8_t>(kString)) {
      ZeroPadding(BodyOf(block_) + entry.data_offset, entry.data_bytes, kBlockAlignment);
      continue;
    }
    ZeroPadding(block_ + entry.data_offset, entry.data_bytes, 8);
    const int64_t count = EntryCount(block_, entry);
    StringOffsets(block_, entry)[count] = ~uint64_t{0};  // marks strings as incomplete
    StringOffsets(block_, entry)[0] = 0;
  }
}

absl::Span<std::byte> BlockWriter::data(size_t i) {
  const LeafEntry& entry = EntryOf(block_, i);
  PENSTOCK_CHECK(entry.dtype != static_cast<uint8_t>(kString));
  return absl::MakeSpan(BodyOf(block_) + entry.data_offset, entry.data_bytes);
}

absl::Span<int64_t> BlockWriter::part(size_t i, int p) {
  const LeafEntry& entry = EntryOf(block_, i);
  PENSTOCK_CHECK(p < entry.parts);
  const PartEntry& part = reinterpret_cast<const PartEntry*>(DimsOf(block_, entry) + entry.rank)[p];
  return absl::MakeSpan(reinterpret_cast<int64_t*>(block_ + part.offset), part.count);
}

absl::Span<char> BlockWriter::OpenString(size_t i, int64_t s, size_t bytes) {
  const LeafEntry& entry = EntryOf(block_, i);
  PENSTOCK_CHECK(entry.dtype == static_cast<uint8_t>(kString));
  PENSTOCK_CHECK(s < EntryCount(block_, entry));
  uint64_t* offsets = StringOffsets(block_, entry);
  const absl::Span<char> all = StringBytes(block_, entry);
  PENSTOCK_CHECK(offsets[s] <= all.size() && bytes <= all.size() - offsets[s]);
  offsets[s + 1] = offsets[s] + bytes;
  return all.subspan(offsets[s], bytes);
}

void BlockWriter::SetString(size_t i, int64_t s, std::string_view value) {
  CopyBytes(OpenString(i, s, value.size()).data(), value.data(), value.size());
}

void BlockWriter::Copy(size_t i, const Tensor& value) {
  if (!value.present()) return;
  const LeafEntry& entry = EntryOf(block_, i);
  const int64_t count = EntryCount(block_, entry);
  PENSTOCK_CHECK(entry.dtype == static_cast<uint8_t>(value.dtype()));
  PENSTOCK_CHECK(count == value.element_count());
  if (value.dtype() == kString) {
    const auto* from = static_cast<const uint64_t*>(value.raw());
    const absl::Span<char> all = StringBytes(block_, entry);
    PENSTOCK_CHECK(all.size() == from[count] - from[0]);
    for (int64_t s = 0; s <= count; ++s) StringOffsets(block_, entry)[s] = from[s] - from[0];
    if (count > 0) CopyBytes(all.data(), value.string(0).data(), all.size());
  } else {
    CopyBytes(data(i).data(), value.raw(), entry.data_bytes);
  }
  for (int p = 0; p < entry.parts; ++p) {
    const bool sparse = value.kind() == TensorSpec::Kind::kSparse;
    const absl::Span<const int64_t> from = !sparse  ? value.row_splits(p)
                                           : p == 0 ? value.indices()
                                                    : value.dense_shape();
    PENSTOCK_CHECK(part(i, p).size() == from.size());
    CopyBytes(part(i, p).data(), from.data(), from.size() * sizeof(int64_t));
  }
}

absl::Span<std::byte> BlockWriter::extensions() {
  const HeadPrefix& prefix = PrefixOf(block_);
  return absl::MakeSpan(BodyOf(block_) - prefix.extension_bytes, prefix.extension_bytes);
}

bool BlockWriter::StringsComplete() const {
  for (const LeafEntry& entry : TableOf(block_)) {
    if (entry.dtype != static_cast<uint8_t>(kString)) continue;
    const int64_t count = EntryCount(block_, entry);
    if (StringOffsets(block_, entry)[count] != StringBytes(block_, entry).size()) return false;
  }
  return true;
}

}  // namespace penstock
