// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "dataplane/element/block.h"
#include "dataplane/element/device_block_check.h"
#include "dataplane/element/extension.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

absl::Status BadBlock(const char* field) {
  return absl::DataLossError(absl::StrCat("an element's block is damaged: ", field));
}

absl::Status BadLeaf(const Spec& spec, size_t i, const char* field) {
  return absl::DataLossError(absl::StrCat("an element's block is damaged: leaf ", i, " ('",
                                          spec.LeafName(i), "'): ", field));
}

// Checks one leaf at a time. REQUIRES: the prefix and the size of the table have been checked.
class Checker {
 public:
  Checker(const std::byte* block, const Spec& spec, bool with_body)
      : block_(block), spec_(spec), with_body_(with_body) {}

  absl::Status CheckLeaf(size_t i) {
    const LeafEntry& entry = TableOf(block_)[i];
    const TensorSpec& wanted = spec_.leaves()[i];
    if (entry.dtype == 0) return CheckAbsent(i, entry, wanted);
    if (entry.dtype != static_cast<uint8_t>(wanted.dtype))
      return NotAdmitted(i, "its dtype differs");
    if (entry.kind != static_cast<uint8_t>(wanted.kind)) return NotAdmitted(i, "its kind differs");
    if (entry.parts != PartsOf(wanted)) return NotAdmitted(i, "its number of parts differs");
    const size_t shape_bytes = entry.rank * sizeof(int64_t) + entry.parts * sizeof(PartEntry);
    if (!InHead(entry.shape_offset, shape_bytes))
      return BadLeaf(spec_, i, "shape_offset is invalid");
    dims_ = absl::MakeConstSpan(At<int64_t>(entry.shape_offset), entry.rank);
    uint64_t count = 1;
    bool empty = false;
    for (int64_t dim : dims_) {
      if (dim < 0) return BadLeaf(spec_, i, "a dimension is negative");
      empty = empty || dim == 0;
      // Readers multiply all dimensions. Even if a dimension is 0, the product of the other
      // dimensions must not overflow.
      if (dim != 0 &&
          (__builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count) || count >> 60 != 0))
        return BadLeaf(spec_, i, "the product of its dimensions is too large");
    }
    if (empty) count = 0;
    if (absl::Status data = CheckData(i, entry, count); !data.ok()) return data;
    return CheckShape(i, entry, wanted);
  }

 private:
  template <class T>
  const T* At(uint64_t offset) const {
    return reinterpret_cast<const T*>(block_ + offset);
  }

  // True if [offset, offset + bytes) is in the head, after the table and before the extensions, and
  // starts at a multiple of 8.
  bool InHead(uint64_t offset, uint64_t bytes) const {
    const HeadPrefix& prefix = PrefixOf(block_);
    const uint64_t begin = sizeof(HeadPrefix) + prefix.leaf_count * sizeof(LeafEntry);
    const uint64_t end = prefix.head_bytes - prefix.extension_bytes;
    return offset % 8 == 0 && offset >= begin && offset <= end && bytes <= end - offset;
  }

  static int PartsOf(const TensorSpec& wanted) {
    if (wanted.kind == TensorSpec::Kind::kDense) return 0;
    return wanted.kind == TensorSpec::Kind::kSparse ? 2 : wanted.ragged_rank;
  }

  absl::Status NotAdmitted(size_t i, const char* what) const {
    return absl::InvalidArgumentError(absl::StrCat("an element's leaf ", i, " ('",
                                                   spec_.LeafName(i), "') is not the expected ",
                                                   spec_.leaves()[i].ToString(), ": ", what));
  }

  absl::Status CheckAbsent(size_t i, const LeafEntry& entry, const TensorSpec& wanted) const {
    constexpr LeafEntry kZero = {};
    if (std::memcmp(&entry, &kZero, sizeof(entry)) != 0)
      return BadLeaf(spec_, i, "it is absent, but its entry is not zero");
    if (!wanted.optional) return NotAdmitted(i, "it was left out");
    return absl::OkStatus();
  }

  absl::Status CheckData(size_t i, const LeafEntry& entry, uint64_t count) const {
    if (entry.dtype == static_cast<uint8_t>(kString)) return CheckStrings(i, entry, count);
    const HeadPrefix& prefix = PrefixOf(block_);
    if (entry.data_offset % kBlockAlignment != 0 || entry.data_offset > prefix.body_bytes ||
        entry.data_bytes > prefix.body_bytes - entry.data_offset)
      return BadLeaf(spec_, i, "data_offset is invalid");
    if (entry.data_bytes != count * SizeOf(static_cast<DType>(entry.dtype)))
      return BadLeaf(spec_, i, "data_bytes is invalid");
    if (entry.dtype != static_cast<uint8_t>(kBool)) return absl::OkStatus();
    if (!with_body_) {
      return absl::InvalidArgumentError(
          absl::StrCat("an element's leaf ", i, " ('", spec_.LeafName(i),
                       "') has bools on a device, where they cannot be checked"));
    }
    // Reading a bool with any other value is undefined behaviour.
    const uint8_t* values = At<uint8_t>(prefix.head_bytes + entry.data_offset);
    uint8_t all = 0;
    for (uint64_t k = 0; k < count; ++k) all |= values[k];
    return all <= 1 ? absl::OkStatus() : BadLeaf(spec_, i, "a bool is neither 0 nor 1");
  }

  absl::Status CheckStrings(size_t i, const LeafEntry& entry, uint64_t count) const {
    if (!InHead(entry.data_offset, entry.data_bytes))
      return BadLeaf(spec_, i, "data_offset is invalid");
    const uint64_t table = (count + 1) * sizeof(uint64_t);
    if (entry.data_bytes < table) return BadLeaf(spec_, i, "data_bytes is invalid");
    const auto* offsets = At<uint64_t>(entry.data_offset);
    bool ascending = offsets[0] == 0;
    for (uint64_t k = 0; k < count; ++k) ascending = ascending && offsets[k] <= offsets[k + 1];
    if (!ascending || offsets[count] != entry.data_bytes - table)
      return BadLeaf(spec_, i, "its string offsets are invalid");
    return absl::OkStatus();
  }

  absl::Status CheckShape(size_t i, const LeafEntry& entry, const TensorSpec& wanted) const {
    if (wanted.kind == TensorSpec::Kind::kDense) {
      return wanted.shape.Admits(dims_) ? absl::OkStatus() : NotAdmitted(i, "its shape differs");
    }
    const auto* parts = At<PartEntry>(entry.shape_offset + entry.rank * sizeof(int64_t));
    for (int p = 0; p < entry.parts; ++p) {
      if (parts[p].count >> 60 != 0 || !InHead(parts[p].offset, parts[p].count * sizeof(int64_t)))
        return BadLeaf(spec_, i, "the position of a part is invalid");
    }
    return wanted.kind == TensorSpec::Kind::kRagged ? CheckRagged(i, parts, wanted)
                                                    : CheckSparse(i, parts, wanted);
  }

  absl::Span<const int64_t> Part(const PartEntry& part) const {
    return absl::MakeConstSpan(At<int64_t>(part.offset), part.count);
  }

  // Every level's splits must ascend from 0 to the number of rows of the next level, or, on the
  // last level, of the flat values.
  absl::Status CheckRagged(size_t i, const PartEntry* parts, const TensorSpec& wanted) const {
    const int levels = wanted.ragged_rank;
    if (levels < 1 || levels > Tensor::kMaxRaggedRank || dims_.empty())
      return BadLeaf(spec_, i, "its rank is invalid");
    if (wanted.shape.has_rank()) {
      if (wanted.shape.rank() != levels + static_cast<int>(dims_.size()))
        return NotAdmitted(i, "its rank differs");
      if (!DimAdmits(wanted.shape.dim(0), static_cast<int64_t>(parts[0].count) - 1))
        return NotAdmitted(i, "its number of rows differs");
      for (size_t d = 1; d < dims_.size(); ++d) {
        if (!DimAdmits(wanted.shape.dim(levels + static_cast<int>(d)), dims_[d]))
          return NotAdmitted(i, "its shape differs");
      }
    }
    for (int level = 0; level < levels; ++level) {
      const absl::Span<const int64_t> splits = Part(parts[level]);
      const int64_t below =
          level + 1 < levels ? static_cast<int64_t>(parts[level + 1].count) - 1 : dims_[0];
      if (splits.empty() || splits.front() != 0 || splits.back() != below)
        return BadLeaf(spec_, i, "its row splits are invalid");
      const int64_t uniform = wanted.shape.has_rank() ? wanted.shape.dim(level + 1) : kUnknownDim;
      for (size_t r = 0; r + 1 < splits.size(); ++r) {
        // Compares instead of subtracting, so that hostile numbers cannot overflow.
        if (splits[r] > splits[r + 1] || splits[r] < 0)
          return BadLeaf(spec_, i, "its row splits are invalid");
        if (!DimAdmits(uniform, splits[r + 1] - splits[r]))
          return NotAdmitted(i, "a row's length differs");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckSparse(size_t i, const PartEntry* parts, const TensorSpec& wanted) const {
    const absl::Span<const int64_t> indices = Part(parts[0]);
    const absl::Span<const int64_t> dense = Part(parts[1]);
    if (dims_.size() != 1) return BadLeaf(spec_, i, "its rank is invalid");
    uint64_t expected = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(dims_[0]), dense.size(), &expected) ||
        expected != indices.size())
      return BadLeaf(spec_, i, "the number of its indices is wrong");
    for (int64_t dim : dense) {
      if (dim < 0) return BadLeaf(spec_, i, "dense_shape has a negative dimension");
    }
    for (size_t k = 0; k < indices.size(); ++k) {
      if (indices[k] < 0 || indices[k] >= dense[k % dense.size()])
        return BadLeaf(spec_, i, "an index is outside dense_shape");
    }
    return wanted.shape.Admits(dense) ? absl::OkStatus()
                                      : NotAdmitted(i, "its dense_shape differs");
  }

  static bool DimAdmits(int64_t wanted, int64_t given) {
    return wanted == kUnknownDim || wanted == given;
  }

  const std::byte* block_;
  const Spec& spec_;
  const bool with_body_;            // the body follows the head in memory
  absl::Span<const int64_t> dims_;  // of the current leaf
};

// `memory` contains the head and the body. With `elsewhere`, `memory` contains only the head, and
// the body has `elsewhere` bytes that are not in host memory.
absl::StatusOr<size_t> Check(absl::Span<const std::byte> memory, const Spec& spec,
                             std::optional<size_t> elsewhere) {
  if (memory.size() < sizeof(HeadPrefix)) return BadBlock("it ends within its prefix");
  if (reinterpret_cast<uintptr_t>(memory.data()) % kBlockAlignment != 0)
    return BadBlock("it does not start at a multiple of 64");
  const HeadPrefix& prefix = PrefixOf(memory.data());
  if (prefix.magic != kBlockMagic) return BadBlock("its magic number is wrong");
  if (prefix.version != kBlockVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "an element's block has version ", prefix.version, "; this release reads ", kBlockVersion));
  }
  if (prefix.head_bytes % kBlockAlignment != 0 || prefix.head_bytes < sizeof(HeadPrefix) ||
      prefix.head_bytes > memory.size())
    return BadBlock("head_bytes is invalid");
  if (prefix.body_bytes % kBlockAlignment != 0 ||
      prefix.body_bytes > elsewhere.value_or(memory.size() - prefix.head_bytes))
    return BadBlock("body_bytes is invalid");
  const size_t room = prefix.head_bytes - sizeof(HeadPrefix);
  if (prefix.leaf_count > room / sizeof(LeafEntry)) return BadBlock("leaf_count is too large");
  if (prefix.extension_bytes % 8 != 0 ||
      prefix.extension_bytes > room - prefix.leaf_count * sizeof(LeafEntry))
    return BadBlock("extension_bytes is invalid");
  RETURN_IF_ERROR(CheckExtensions(memory.data()));
  if ((prefix.flags & (kFlagEnd | kFlagError)) != 0) {
    if (prefix.leaf_count != 0 || prefix.body_bytes != 0)
      return BadBlock("an END or ERROR block has leaves");
    return prefix.head_bytes;
  }
  if (prefix.leaf_count != spec.leaves().size() ||
      prefix.structure != spec.structure_fingerprint()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an element does not have the expected structure ", spec.ToString(), ": it has ",
        prefix.leaf_count, " leaves and the fingerprint ", absl::Hex(prefix.structure)));
  }
  Checker checker(memory.data(), spec, !elsewhere.has_value());
  for (size_t i = 0; i < prefix.leaf_count; ++i) {
    RETURN_IF_ERROR(checker.CheckLeaf(i));
  }
  return BlockBytes(memory.data());
}

}  // namespace

absl::StatusOr<size_t> CheckBlock(absl::Span<const std::byte> memory, const Spec& spec) {
  return Check(memory, spec, std::nullopt);
}

absl::Status CheckBlockHead(absl::Span<const std::byte> head, size_t body_bytes, const Spec& spec) {
  ASSIGN_OR_RETURN(const size_t bytes, Check(head, spec, body_bytes));
  return bytes == head.size() + body_bytes
             ? absl::OkStatus()
             : BadBlock("head_bytes or body_bytes differs from the received size");
}

bool HeadDescribesAll(const Spec& spec) {
  return absl::c_none_of(spec.leaves(), [](const TensorSpec& leaf) { return leaf.dtype == kBool; });
}

}  // namespace penstock
