// SPDX-License-Identifier: Apache-2.0
#include "penstock/element.h"

#include <cstdio>
#include <cstdlib>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "dataplane/element/block.h"
#include "penstock/check.h"

namespace penstock {
namespace {

absl::Span<const int64_t> PartOf(const std::byte* block, const LeafEntry& entry, int p) {
  const auto* parts =
      reinterpret_cast<const PartEntry*>(block + entry.shape_offset + entry.rank * sizeof(int64_t));
  return absl::MakeConstSpan(reinterpret_cast<const int64_t*>(block + parts[p].offset),
                             parts[p].count);
}

std::string Keys(const Spec& spec) {
  if (spec.kind() != Spec::Kind::kDict) return absl::StrCat("it is ", spec.ToString());
  std::string keys = "its keys are";
  for (size_t i = 0; i < spec.size(); ++i) {
    absl::StrAppend(&keys, i == 0 ? " '" : ", '", spec.key(i), "'");
  }
  return keys;
}

std::string Text(const Element& element, const Spec& spec, size_t& leaf) {
  if (spec.kind() == Spec::Kind::kLeaf) return element.tensor(leaf++).ToString();
  const bool dict = spec.kind() == Spec::Kind::kDict;
  std::string text = dict ? "{" : "(";
  for (size_t i = 0; i < spec.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ");
    if (dict) absl::StrAppend(&text, spec.key(i), ": ");
    absl::StrAppend(&text, Text(element, spec.member(i), leaf));
  }
  return text + (dict ? "}" : ")");
}

uint32_t Narrow(uint64_t number) {
  PENSTOCK_CHECK(number <= std::numeric_limits<uint32_t>::max());
  return static_cast<uint32_t>(number);
}

}  // namespace

Tensor Element::tensor(size_t i) const {
  PENSTOCK_CHECK(block_ != nullptr && i < PrefixOf(block_).leaf_count);
  const LeafEntry& entry = TableOf(block_)[i];
  if (entry.dtype == 0) return Tensor();
  const auto* dims = reinterpret_cast<const int64_t*>(block_ + entry.shape_offset);
  const absl::Span<const int64_t> shape(dims, entry.rank);
  const auto dtype = static_cast<DType>(entry.dtype);
  Tensor tensor;
  if (dtype == kString) {
    const std::byte* offsets = block_ + entry.data_offset;
    tensor = Tensor(dtype, shape, offsets);
    const size_t table = (tensor.element_count() + 1) * sizeof(uint64_t);
    tensor = Tensor(dtype, shape, offsets, reinterpret_cast<const char*>(offsets + table));
  } else {
    tensor = Tensor(dtype, shape, block_ + PrefixOf(block_).head_bytes + entry.data_offset);
  }
  if (entry.kind == static_cast<uint8_t>(TensorSpec::Kind::kSparse)) {
    tensor.SetSparse(PartOf(block_, entry, 0), PartOf(block_, entry, 1));
  } else if (entry.kind == static_cast<uint8_t>(TensorSpec::Kind::kRagged)) {
    absl::Span<const int64_t> splits[Tensor::kMaxRaggedRank];
    for (int p = 0; p < entry.parts; ++p) splits[p] = PartOf(block_, entry, p);
    tensor.SetRagged(absl::MakeConstSpan(splits, entry.parts));
  }
  return tensor;
}

absl::StatusOr<Tensor> Element::Find(std::string_view key) const {
  const std::optional<Spec::Found> found = spec_.Find(key);
  if (!found) {
    return absl::NotFoundError(
        absl::StrCat("the element has no member '", std::string(key), "'; ", Keys(spec_)));
  }
  if (found->spec->kind() != Spec::Kind::kLeaf) {
    return absl::InvalidArgumentError(absl::StrCat("the element's member '", std::string(key),
                                                   "' is not a tensor but ",
                                                   found->spec->ToString()));
  }
  return tensor(found->first_leaf);
}

Tensor Element::operator[](std::string_view key) const {
  absl::StatusOr<Tensor> found = Find(key);
  if (!found.ok()) {
    std::fprintf(stderr, "penstock: %s\n", found.status().ToString().c_str());
    std::abort();
  }
  return *found;
}

Identity Element::identity() const {
  const HeadPrefix& prefix = PrefixOf(block_);
  return {.job = JobId(prefix.job),
          .iteration = IterationId(prefix.iteration),
          .partition = PartitionId(prefix.partition),
          .placement = Placement(prefix.placement),
          .index = static_cast<Index>(prefix.index),
          .round = prefix.round,
          .consumer = prefix.consumer};
}

void Element::set_identity(const Identity& identity) {
  PENSTOCK_CHECK(block_ != nullptr && !IsShared());
  SetIdentity(block_, identity);
}

void SetIdentity(std::byte* block, const Identity& identity) {
  HeadPrefix& prefix = MutablePrefixOf(block);
  prefix.job = identity.job.value();
  prefix.iteration = identity.iteration.value();
  prefix.partition = Narrow(identity.partition.value());
  prefix.placement = Narrow(identity.placement.value());
  prefix.index = static_cast<uint64_t>(identity.index);
  prefix.round = identity.round;
  prefix.consumer = identity.consumer;
}

absl::Span<std::byte> Element::block() const {
  return block_ == nullptr ? absl::Span<std::byte>() : absl::MakeSpan(block_, BlockBytes(block_));
}

std::string Element::ToString() const {
  if (block_ == nullptr) return "no element";
  size_t leaf = 0;
  return Text(*this, spec_, leaf);
}

}  // namespace penstock
