// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/element_sink.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/status.h"

namespace penstock {
namespace {

bool AllStatic(const Spec& spec) {
  for (const TensorSpec& leaf : spec.leaves())
    if (!leaf.IsStatic()) return false;
  return true;
}

}  // namespace

absl::StatusOr<OpenBlock*> ElementSink::Block() {
  if (block_.has_value()) return &*block_;
  if (!AllStatic(spec_)) {
    kept_.resize(spec_.leaves().size());
    return nullptr;
  }
  ASSIGN_OR_RETURN(block_, NewBlock(pool_, BlockLayout::OfStatic(spec_), spec_));
  return &*block_;
}

absl::StatusOr<absl::Span<std::byte>> ElementSink::Place(size_t i, DType dtype,
                                                         absl::Span<const int64_t> dims) {
  ASSIGN_OR_RETURN(OpenBlock * block, Block());
  ++given_;
  if (block != nullptr) return block->writer.data(i);
  Kept& kept = kept_[i];
  kept.dims.assign(dims.begin(), dims.end());
  kept.tensor = Tensor(dtype, kept.dims, nullptr);
  const size_t bytes = kept.tensor.byte_count();
  kept.values = std::make_unique_for_overwrite<std::byte[]>(bytes);
  kept.tensor = Tensor(dtype, kept.dims, kept.values.get());
  return absl::MakeSpan(kept.values.get(), bytes);
}

absl::Status ElementSink::Copy(size_t i, const Tensor& value) {
  ASSIGN_OR_RETURN(OpenBlock * block, Block());
  ++given_;
  if (block != nullptr) {
    block->writer.Copy(i, value);
    return absl::OkStatus();
  }
  if (!value.present()) return absl::OkStatus();  // an optional leaf, left out
  ASSIGN_OR_RETURN(kept_[i].copy, MakeElement(pool_, {&value, 1}, Spec(spec_.leaves()[i])));
  kept_[i].tensor = kept_[i].copy.tensor(0);
  return absl::OkStatus();
}

absl::StatusOr<Element> ElementSink::Finish() && {
  if (given_ != spec_.leaves().size()) {
    return absl::InternalError(
        absl::StrCat("a function gave ", given_, " of ", spec_.leaves().size(), " results"));
  }
  ASSIGN_OR_RETURN(OpenBlock * block, Block());
  if (block != nullptr) return std::move(*block).Seal(spec_);
  std::vector<Tensor> tensors;
  for (const Kept& kept : kept_) tensors.push_back(kept.tensor);
  return MakeElement(pool_, tensors, spec_);
}

}  // namespace penstock
