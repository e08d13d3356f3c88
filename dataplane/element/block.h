// SPDX-License-Identifier: Apache-2.0
// The block of an element: head and body, in the layout of docs/element.md. A BlockLayout has the
// size of a block and the offset of each part of the block. A BlockWriter then writes the block
// into memory of that size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/element.h"
#include "penstock/ids.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

#pragma GCC visibility push(default)
namespace penstock {

inline constexpr uint32_t kBlockMagic = 0x31425350;  // "PSB1", little endian
inline constexpr uint16_t kBlockVersion = 1;
inline constexpr size_t kBlockAlignment = 64;  // bytes; a cache line, and aligned for SIMD loads

inline constexpr size_t AlignUp(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Flags of a head.
enum BlockFlag : uint16_t {
  kFlagEnd = 1 << 0,    // the end of a partition
  kFlagError = 1 << 1,  // an error at this index; its status is in the extension
  kFlagSkip = 1 << 2,
  kFlagPad = 1 << 3,
  kFlagShared = 1 << 4,
  kFlagCompressed = 1 << 5,
  kFlagBookmark = 1 << 6,
};

// The fixed part of a head. Little endian. A change needs a new version.
struct HeadPrefix {
  uint32_t magic;
  uint16_t version;
  uint16_t flags;
  uint32_t head_bytes;  // from the prefix to the body; a multiple of 64
  uint32_t leaf_count;
  uint64_t body_bytes;  // a multiple of 64
  uint64_t structure;   // Spec::structure_fingerprint() of the leaves
  uint64_t job;
  uint64_t iteration;
  uint64_t index;
  int64_t round;
  uint32_t partition;
  uint32_t placement;
  int32_t consumer;
  uint32_t extension_bytes;  // at the end of the head; a multiple of 8
};
static_assert(sizeof(HeadPrefix) == 80, "fixed in docs/element.md");

// One leaf's entry in the table after the prefix. An entry of zeros stands for an optional leaf
// that is left out.
struct LeafEntry {
  uint8_t dtype;
  uint8_t kind;           // TensorSpec::Kind
  uint8_t rank;           // of the (flat) values
  uint8_t parts;          // ragged: levels of row splits; sparse: 2 (indices, dense_shape)
  uint32_t shape_offset;  // in the head: dims int64[rank], then PartEntry[parts]
  // Where the values begin in the body. Strings are in the head instead: uint64 offsets[count + 1],
  // then the bytes of the strings.
  uint64_t data_offset;
  uint64_t data_bytes;  // of the values; of strings, the offsets count too
};
static_assert(sizeof(LeafEntry) == 24, "fixed in docs/element.md");

// A host-only part of a leaf: int64s in the head.
struct PartEntry {
  uint64_t offset;  // in the head, a multiple of 8
  uint64_t count;   // of int64s
};
static_assert(sizeof(PartEntry) == 16, "fixed in docs/element.md");

// The sizes of one leaf. `dims` are the dims of the (flat) values.
struct LeafLayout {
  DType dtype = DType::kInvalid;  // kInvalid: an optional leaf that is left out
  TensorSpec::Kind kind = TensorSpec::Kind::kDense;
  absl::InlinedVector<int64_t, 6> dims;
  uint64_t string_bytes = 0;  // total of all strings
  // Ragged: the number of int64s in each level's row splits, outermost first. Sparse: the numbers
  // of int64s in the indices and in dense_shape.
  absl::InlinedVector<int64_t, 2> part_counts;
};

// The offsets of a block's parts. A value type. If all elements of a dataset have equal shapes,
// they can share one layout.
class BlockLayout {
 public:
  BlockLayout() = default;
  // Returns the layout of these leaves, with `extension_bytes` of space for extensions (the sum of
  // the extensions' ExtensionBytes()). InvalidArgument for a negative dimension, a rank above 255,
  // a ragged rank above kMaxRaggedRank, 2^60 values or more (dimensions of 0 not counted, as in
  // NumPy), or strings and host-only parts of 4 GiB or more.
  static absl::StatusOr<BlockLayout> Of(absl::Span<const LeafLayout> leaves,
                                        size_t extension_bytes = 0);
  // Returns the layout that every element of `spec` has. REQUIRES: each leaf IsStatic().
  static BlockLayout OfStatic(const Spec& spec);

  size_t bytes() const { return head_bytes() + body_bytes_; }
  size_t head_bytes() const { return head_bytes_; }
  size_t body_bytes() const { return body_bytes_; }
  size_t extension_bytes() const { return extension_bytes_; }
  size_t size() const { return leaf_count_; }

 private:
  friend class BlockWriter;
  // The table and shapes that follow the prefix in every block of this layout.
  absl::InlinedVector<uint64_t, 24> image_;
  size_t leaf_count_ = 0;
  size_t head_bytes_ = AlignUp(sizeof(HeadPrefix), kBlockAlignment);
  size_t used_head_bytes_ = sizeof(HeadPrefix);  // before the padding and the extensions
  size_t extension_bytes_ = 0;
  size_t body_bytes_ = 0;
};

// Writes one block into memory that is at least as large as the block. The constructor writes the
// prefix, the table, the dims, and zeros into all padding. The caller then fills every leaf, in any
// order, from any thread (one thread per leaf, or per row of a leaf).
class BlockWriter {
 public:
  // REQUIRES: `memory` is 64-byte aligned and has at least layout.bytes(); `spec` has as many
  // leaves as the layout.
  BlockWriter(const BlockLayout& layout, absl::Span<std::byte> memory, const Spec& spec);

  // Returns the unwritten memory for the dense values of leaf `i` (the flat values of a ragged or
  // sparse leaf). Not for strings.
  absl::Span<std::byte> data(size_t i);
  template <class T>
  T* data_as(size_t i) {
    return reinterpret_cast<T*>(data(i).data());
  }
  // Returns the memory for host-only part `p` of leaf `i`: row splits, indices, dense_shape.
  absl::Span<int64_t> part(size_t i, int p);
  // Writes string number `s` of leaf `i`. Strings are written in order from 0; the leaf's offsets
  // are complete once its last string has been written. Aborts if the strings exceed the layout's
  // string_bytes.
  void SetString(size_t i, int64_t s, std::string_view value);
  // Same as SetString(), but returns memory of `bytes` bytes into which the caller writes the
  // string.
  absl::Span<char> OpenString(size_t i, int64_t s, size_t bytes);
  // Copies a whole leaf. REQUIRES: `value` has the dims and parts of the layout.
  void Copy(size_t i, const Tensor& value);
  // Returns the zeroed space for extensions (extension.h).
  absl::Span<std::byte> extensions();
  // Returns true once all strings have been written. Does not check leaves without strings.
  bool StringsComplete() const;

  std::byte* block() const { return block_; }

 private:
  std::byte* block_;
};

// Returns the layout of a block that holds a copy of `tensors`.
absl::StatusOr<BlockLayout> LayoutOf(absl::Span<const Tensor> tensors);
LeafLayout LayoutOfLeaf(const Tensor& tensor);

// Checks untrusted bytes (every offset, count and alignment, row splits, string offsets, sparse
// indices and bools), so that no read through the block goes out of bounds. Also checks that `spec`
// admits the leaves. Returns the number of bytes of the block, DataLoss naming a wrong field, or
// InvalidArgument naming a leaf that `spec` does not admit. `memory` must be 64-byte aligned, and
// may be longer than the block. An END or ERROR block has no leaves and fits any spec.
absl::StatusOr<size_t> CheckBlock(absl::Span<const std::byte> memory, const Spec& spec);

inline const HeadPrefix& PrefixOf(const std::byte* block) {
  return *reinterpret_cast<const HeadPrefix*>(block);
}
inline HeadPrefix& MutablePrefixOf(std::byte* block) {
  return *reinterpret_cast<HeadPrefix*>(block);
}
// Writes the element's identity into the block's head. REQUIRES: partition and placement fit in 32
// bits.
void SetIdentity(std::byte* block, const Identity& identity);

inline absl::Span<const LeafEntry> TableOf(const std::byte* block) {
  return {reinterpret_cast<const LeafEntry*>(block + sizeof(HeadPrefix)),
          PrefixOf(block).leaf_count};
}
inline size_t BlockBytes(const std::byte* block) {
  return PrefixOf(block).head_bytes + PrefixOf(block).body_bytes;
}

}  // namespace penstock
#pragma GCC visibility pop
