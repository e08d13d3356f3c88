// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "dataplane/element/block.h"
#include "penstock/check.h"

namespace penstock {
namespace {

static_assert(std::endian::native == std::endian::little,
              "blocks are little endian and read in place");

constexpr size_t kMaxBytes = size_t{1} << 62;
constexpr size_t kMaxCount = (size_t{1} << 60) - 1;  // of values; at 16 B each, below 2^64 bytes
constexpr size_t kMaxHeadBytes = std::numeric_limits<uint32_t>::max() - kBlockAlignment;

// Returns the product, or kMaxBytes if the product is larger.
size_t Times(size_t a, size_t b) {
  size_t product;
  if (__builtin_mul_overflow(a, b, &product)) return kMaxBytes;
  return std::min(product, kMaxBytes);
}

absl::Status TooLarge(size_t i, const char* what) {
  return absl::InvalidArgumentError(
      absl::StrCat("leaf ", i, " makes an element too large: ", what));
}

// Returns the number of values. The limit applies to the product of the dimensions other than 0,
// which must not overflow, because readers multiply the dimensions one by one.
absl::StatusOr<size_t> LayoutCount(const LeafLayout& leaf, size_t i) {
  size_t count = 1;
  bool empty = false;
  for (int64_t dim : leaf.dims) {
    if (dim < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("leaf ", i, " of an element has the negative dimension ", dim));
    }
    empty = empty || dim == 0;
    if (dim != 0) count = Times(count, static_cast<size_t>(dim));
  }
  if (count > kMaxCount) return TooLarge(i, "the leaf has 2^60 values or more");
  return empty ? 0 : count;
}

}  // namespace

absl::StatusOr<BlockLayout> BlockLayout::Of(absl::Span<const LeafLayout> leaves,
                                            size_t extension_bytes) {
  PENSTOCK_CHECK(extension_bytes % 8 == 0);
  BlockLayout layout;
  layout.leaf_count_ = leaves.size();
  layout.extension_bytes_ = extension_bytes;
  size_t shape_words = 0;
  for (const LeafLayout& leaf : leaves)
    shape_words += leaf.dims.size() + 2 * leaf.part_counts.size();
  constexpr size_t kEntryWords = sizeof(LeafEntry) / sizeof(uint64_t);
  layout.image_.resize(leaves.size() * kEntryWords + shape_words);

  size_t word = leaves.size() * kEntryWords;  // index in the image, where the next leaf's dims go
  size_t head = sizeof(HeadPrefix) + layout.image_.size() * sizeof(uint64_t);
  size_t body = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const LeafLayout& leaf = leaves[i];
    if (leaf.dtype == DType::kInvalid) continue;  // left out: an entry of zeros
    absl::StatusOr<size_t> count = LayoutCount(leaf, i);
    if (!count.ok()) return count.status();
    if (leaf.dims.size() > 255) return TooLarge(i, "the leaf's rank is above 255");
    if (leaf.part_counts.size() > Tensor::kMaxRaggedRank)
      return TooLarge(i, "the leaf has more than 4 levels of rows");
    LeafEntry entry = {};
    entry.dtype = static_cast<uint8_t>(leaf.dtype);
    entry.kind = static_cast<uint8_t>(leaf.kind);
    entry.rank = static_cast<uint8_t>(leaf.dims.size());
    entry.parts = static_cast<uint8_t>(leaf.part_counts.size());
    entry.shape_offset = static_cast<uint32_t>(sizeof(HeadPrefix) + word * sizeof(uint64_t));
    for (int64_t dim : leaf.dims) layout.image_[word++] = static_cast<uint64_t>(dim);
    for (int64_t part : leaf.part_counts) {
      PENSTOCK_CHECK(part >= 0);
      layout.image_[word++] = head;
      layout.image_[word++] = static_cast<uint64_t>(part);
      head = std::min(head + Times(part, sizeof(int64_t)), kMaxBytes);
    }
    if (leaf.dtype == kString) {
      entry.data_offset = head;
      entry.data_bytes = std::min(
          Times(*count + 1, sizeof(uint64_t)) + std::min(leaf.string_bytes, kMaxBytes), kMaxBytes);
      head = std::min(head + AlignUp(entry.data_bytes, 8), kMaxBytes);
    } else {
      entry.data_offset = body;
      entry.data_bytes = Times(*count, SizeOf(leaf.dtype));
      body += AlignUp(entry.data_bytes, kBlockAlignment);
    }
    if (head > kMaxHeadBytes)
      return TooLarge(i, "up to this leaf, the strings and row splits take 4 GiB or more");
    if (body >= kMaxBytes)
      return TooLarge(i, "up to this leaf, the values take 2^62 bytes or more");
    std::memcpy(&layout.image_[i * kEntryWords], &entry, sizeof(entry));
  }
  if (head + extension_bytes > kMaxHeadBytes) {
    return absl::InvalidArgumentError(
        "an element is too large: with the extensions, its head takes 4 GiB or more");
  }
  layout.used_head_bytes_ = head;
  layout.head_bytes_ = AlignUp(head + extension_bytes, kBlockAlignment);
  layout.body_bytes_ = body;
  return layout;
}

BlockLayout BlockLayout::OfStatic(const Spec& spec) {
  absl::InlinedVector<LeafLayout, 4> leaves;
  for (const TensorSpec& leaf : spec.leaves()) {
    PENSTOCK_CHECK(leaf.IsStatic());
    LeafLayout& layout = leaves.emplace_back();
    layout.dtype = leaf.dtype;
    layout.dims.assign(leaf.shape.dims().begin(), leaf.shape.dims().end());
  }
  absl::StatusOr<BlockLayout> layout = Of(leaves);
  PENSTOCK_CHECK(layout.ok());  // specs are checked when a dataset is built
  return *std::move(layout);
}

LeafLayout LayoutOfLeaf(const Tensor& tensor) {
  LeafLayout leaf;
  leaf.dtype = tensor.dtype();
  if (!tensor.present()) return leaf;
  leaf.kind = tensor.kind();
  leaf.dims.assign(tensor.dims().begin(), tensor.dims().end());
  if (tensor.dtype() == kString) {
    const auto* offsets = static_cast<const uint64_t*>(tensor.raw());
    leaf.string_bytes = offsets[tensor.element_count()] - offsets[0];
  }
  if (tensor.kind() == TensorSpec::Kind::kSparse) {
    leaf.part_counts = {static_cast<int64_t>(tensor.indices().size()),
                        static_cast<int64_t>(tensor.dense_shape().size())};
  }
  for (int level = 0; level < tensor.ragged_rank(); ++level) {
    leaf.part_counts.push_back(static_cast<int64_t>(tensor.row_splits(level).size()));
  }
  return leaf;
}

absl::StatusOr<BlockLayout> LayoutOf(absl::Span<const Tensor> tensors) {
  absl::InlinedVector<LeafLayout, 4> leaves;
  for (const Tensor& tensor : tensors) leaves.push_back(LayoutOfLeaf(tensor));
  return BlockLayout::Of(leaves);
}

}  // namespace penstock
