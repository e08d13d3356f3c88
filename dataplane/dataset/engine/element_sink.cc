// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/element_sink.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/memory/element_limit.h"
#include "include/status_macros.h"

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
  ASSIGN_OR_RETURN(block_, NewBlock(pool_, BlockLayout::OfStatic(spec_), spec_, place_));
  return &*block_;
}

absl::StatusOr<absl::Span<std::byte>> ElementSink::Place(size_t i, DType dtype,
                                                         absl::Span<const int64_t> dims) {
  ++given_;
  if (spec_.leaves().size() == 1 && !AllStatic(spec_)) return PlaceOnlyLeaf(dtype, dims);
  ASSIGN_OR_RETURN(OpenBlock * block, Block());
  if (block != nullptr) return block->writer.data(i);
  Kept& kept = kept_[i];
  kept.dims.assign(dims.begin(), dims.end());
  kept.tensor = Tensor(dtype, kept.dims, nullptr);
  const size_t bytes = kept.tensor.byte_count();
  if (bytes > static_cast<size_t>(MostElementBytes()))
    return AboveElementLimit(absl::StrCat("a component of ", bytes, " bytes"));
  ASSIGN_OR_RETURN(kept.values, pool_.Lend(bytes));
  kept.tensor = Tensor(dtype, kept.dims, kept.values.bytes().data());
  return kept.values.bytes().first(bytes);
}

absl::StatusOr<absl::Span<std::byte>> ElementSink::PlaceOnlyLeaf(DType dtype,
                                                                 absl::Span<const int64_t> dims) {
  LeafLayout leaf;
  leaf.dtype = dtype;
  leaf.dims.assign(dims.begin(), dims.end());
  ASSIGN_OR_RETURN(const BlockLayout layout, BlockLayout::Of({&leaf, 1}));
  ASSIGN_OR_RETURN(block_, NewBlock(pool_, layout, spec_, place_));
  return block_->writer.data(0);
}

absl::Status ElementSink::Copy(size_t i, const Tensor& value) {
  ++given_;
  if (spec_.leaves().size() == 1 && !AllStatic(spec_)) {
    ASSIGN_OR_RETURN(whole_, MakeElement(pool_, {&value, 1}, spec_, place_));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(OpenBlock * block, Block());
  if (block != nullptr) {
    block->writer.Copy(i, value);
    return absl::OkStatus();
  }
  if (!value.present()) return absl::OkStatus();  // an optional leaf that is left out
  ASSIGN_OR_RETURN(kept_[i].copy, MakeElement(DefaultPool(), {&value, 1}, Spec(spec_.leaves()[i])));
  kept_[i].tensor = kept_[i].copy.tensor(0);
  return absl::OkStatus();
}

absl::StatusOr<Element> ElementSink::Finish() && {
  if (given_ != spec_.leaves().size()) {
    return absl::InternalError(
        absl::StrCat("a function returned ", given_, " of ", spec_.leaves().size(), " results"));
  }
  if (whole_) return std::move(whole_);
  ASSIGN_OR_RETURN(OpenBlock * block, Block());
  if (block != nullptr) return std::move(*block).Seal(spec_);
  std::vector<Tensor> tensors;
  for (const Kept& kept : kept_) tensors.push_back(kept.tensor);
  return MakeElement(pool_, tensors, spec_, place_);
}

}  // namespace penstock
