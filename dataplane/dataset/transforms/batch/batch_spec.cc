// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/batch/batch_spec.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/tensor.h"

namespace penstock {
namespace {

absl::StatusOr<TensorSpec> MadeRagged(const TensorSpec& leaf, int ragged_rank, int64_t rows) {
  if (ragged_rank > Tensor::kMaxRaggedRank) {
    return absl::InvalidArgumentError(absl::StrCat("would have ", ragged_rank,
                                                   " ragged dimensions; at most ",
                                                   Tensor::kMaxRaggedRank, " are supported"));
  }
  TensorSpec ragged = leaf;
  ragged.kind = TensorSpec::Kind::kRagged;
  ragged.shape = leaf.shape.WithLeading(rows);
  ragged.ragged_rank = ragged_rank;
  return ragged;
}

absl::StatusOr<TensorSpec> Stacked(const TensorSpec& leaf, int64_t rows) {
  if (leaf.kind == TensorSpec::Kind::kRagged) return MadeRagged(leaf, leaf.ragged_rank + 1, rows);
  TensorSpec stacked = leaf;
  stacked.shape = leaf.shape.WithLeading(rows);
  return stacked;
}

absl::StatusOr<TensorSpec> StackedRagged(const TensorSpec& leaf, int64_t rows) {
  if (leaf.kind != TensorSpec::Kind::kDense) return Stacked(leaf, rows);
  if (!leaf.shape.has_rank()) {
    return absl::InvalidArgumentError(
        "has no known rank, so its ragged dimensions cannot be determined; Reshape it");
  }
  int ragged_rank = 0;
  for (int d = 0; d < leaf.shape.rank(); ++d)
    if (leaf.shape.dim(d) == kUnknownDim) ragged_rank = d + 1;
  return ragged_rank == 0 ? Stacked(leaf, rows) : MadeRagged(leaf, ragged_rank, rows);
}

template <class StackedLeaf>
absl::StatusOr<Spec> OfRows(const Spec& row, int64_t rows, StackedLeaf stacked_leaf) {
  std::vector<TensorSpec> leaves;
  for (size_t i = 0; i < row.leaves().size(); ++i) {
    absl::StatusOr<TensorSpec> leaf = stacked_leaf(row.leaves()[i], rows);
    if (!leaf.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(ComponentName(row, i), " ", leaf.status().message()));
    }
    leaves.push_back(*std::move(leaf));
  }
  return row.WithLeaves(leaves);
}

}  // namespace

absl::StatusOr<Spec> StackedSpec(const Spec& row, int64_t rows) {
  return OfRows(row, rows, Stacked);
}

absl::StatusOr<Spec> RaggedSpec(const Spec& row, int64_t rows) {
  return OfRows(row, rows, StackedRagged);
}

Cardinality BatchCount(Cardinality elements, int64_t size, bool drop_remainder) {
  if (elements < 0) return elements;
  return elements / size + (elements % size != 0 && !drop_remainder ? 1 : 0);
}

Cardinality UnbatchedCount(const Spec& batch, Cardinality elements) {
  if (elements == 0 || elements == kUnknown) return elements;
  int64_t rows = kUnknownDim;
  for (const TensorSpec& leaf : batch.leaves())
    if (leaf.shape.has_rank()) rows = std::max(rows, leaf.shape.dim(0));
  if (rows == kUnknownDim) return kUnknown;
  if (elements == kInfinite) return rows == 0 ? kUnknown : kInfinite;
  Cardinality all;
  return __builtin_mul_overflow(elements, rows, &all) ? kUnknown : all;
}

}  // namespace penstock
