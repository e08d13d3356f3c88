// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/batch/batch_rows.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/row_view.h"
#include "dataplane/dataset/transforms/batch/batch_spec.h"
#include "penstock/status.h"

namespace penstock {
namespace {

using Kind = TensorSpec::Kind;
using Parts = BatchRows::Parts;

Shape WithoutFirst(const Shape& shape) {
  if (!shape.has_rank()) return shape;
  return Shape(std::vector<int64_t>(shape.dims().begin() + 1, shape.dims().end()));
}

int64_t RowCount(const Tensor& leaf) {
  if (leaf.kind() == Kind::kRagged) return static_cast<int64_t>(leaf.row_splits(0).size()) - 1;
  if (leaf.kind() == Kind::kSparse) return leaf.dense_shape()[0];
  return leaf.dim(0);
}

int64_t RowOfValue(const Tensor& sparse, int64_t value) {
  return sparse.indices()[value * sparse.dense_shape().size()];
}

absl::Status CheckRowByRow(const Tensor& sparse) {
  for (int64_t v = 1; v < sparse.dim(0); ++v) {
    if (RowOfValue(sparse, v) < RowOfValue(sparse, v - 1))
      return absl::InvalidArgumentError("has values that are not sorted by row");
  }
  return absl::OkStatus();
}

// Returns the number of the first value in row `row` or a later row.
int64_t FirstValueFrom(const Tensor& sparse, int64_t row) {
  int64_t from = 0, to = sparse.dim(0);
  while (from < to) {
    const int64_t middle = from + (to - from) / 2;
    if (RowOfValue(sparse, middle) < row)
      from = middle + 1;
    else
      to = middle;
  }
  return from;
}

// Returns one row of level 0 of a ragged tensor, without that level.
Tensor RaggedRow(const Tensor& ragged, int64_t row, Parts& parts) {
  int64_t from = ragged.row_splits(0)[row], to = ragged.row_splits(0)[row + 1];
  absl::InlinedVector<absl::Span<const int64_t>, Tensor::kMaxRaggedRank> splits;
  for (int level = 1; level < ragged.ragged_rank(); ++level) {
    const absl::Span<const int64_t> its = ragged.row_splits(level);
    auto& own = parts.emplace_back();
    for (int64_t i = from; i <= to; ++i) own.push_back(its[i] - its[from]);
    splits.push_back(own);
    to = its[to];
    from = its[from];
  }
  auto& dims = parts.emplace_back(ragged.dims().begin(), ragged.dims().end());
  dims[0] = to - from;
  const int64_t inner = Product(ragged.dims().subspan(1));
  Tensor view = ValuesOf(ragged, from * inner, dims);
  if (!splits.empty()) view.SetRagged(splits);
  return view;
}

Tensor SparseRow(const Tensor& sparse, int64_t row, Parts& parts) {
  const size_t rank = sparse.dense_shape().size();
  const int64_t from = FirstValueFrom(sparse, row), to = FirstValueFrom(sparse, row + 1);
  auto& indices = parts.emplace_back();
  for (int64_t v = from; v < to; ++v)
    for (size_t d = 1; d < rank; ++d) indices.push_back(sparse.indices()[v * rank + d]);
  auto& dims = parts.emplace_back();
  dims.push_back(to - from);
  Tensor view = ValuesOf(sparse, from, dims);
  view.SetSparse(indices, sparse.dense_shape().subspan(1));
  return view;
}

}  // namespace

absl::StatusOr<Spec> RowSpecOf(const Spec& batch) {
  if (batch.leaves().empty())
    return absl::InvalidArgumentError("the element has no component to take rows from");
  std::vector<TensorSpec> rows;
  for (size_t i = 0; i < batch.leaves().size(); ++i) {
    const TensorSpec& leaf = batch.leaves()[i];
    const int least = leaf.kind == Kind::kSparse ? 2 : 1;
    if (leaf.shape.has_rank() && leaf.shape.rank() < least) {
      return absl::InvalidArgumentError(
          absl::StrCat(ComponentName(batch, i), " is ", leaf.ToString(), ", which has no rows"));
    }
    TensorSpec& row = rows.emplace_back(leaf);
    row.shape = WithoutFirst(leaf.shape);
    if (leaf.kind == Kind::kRagged && --row.ragged_rank == 0) row.kind = Kind::kDense;
  }
  return batch.WithLeaves(rows);
}

absl::StatusOr<BatchRows> BatchRows::Of(Element batch) {
  BatchRows rows(std::move(batch));
  const Spec& spec = rows.batch_.spec();
  std::optional<size_t> counted;  // the leaf that gave the number of rows
  for (size_t i = 0; i < rows.batch_.size(); ++i) {
    const Tensor leaf = rows.batch_.tensor(i);
    if (!leaf.present()) continue;
    if (leaf.kind() == Kind::kDense && leaf.rank() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(ComponentName(spec, i), " is a scalar, which has no rows"));
    }
    const int64_t count = RowCount(leaf);
    if (counted.has_value() && count != rows.count_) {
      return absl::InvalidArgumentError(absl::StrCat(ComponentName(spec, i), " has ", count,
                                                     " rows, but ", ComponentName(spec, *counted),
                                                     " has ", rows.count_));
    }
    counted = i;
    rows.count_ = count;
    if (leaf.kind() != Kind::kSparse) continue;
    if (absl::Status ordered = CheckRowByRow(leaf); !ordered.ok()) {
      return absl::Status(ordered.code(), absl::StrCat(ComponentName(spec, i), " ",
                                                       std::string(ordered.message())));
    }
  }
  if (counted.has_value()) return absl::StatusOr<BatchRows>(std::move(rows));
  return absl::InvalidArgumentError("all components are absent, so there are no rows");
}

Tensor BatchRows::Leaf(size_t i, int64_t r, Parts& parts) const {
  const Tensor leaf = batch_.tensor(i);
  if (!leaf.present()) return leaf;
  if (leaf.kind() == Kind::kRagged) return RaggedRow(leaf, r, parts);
  if (leaf.kind() == Kind::kSparse) return SparseRow(leaf, r, parts);
  return RowOf(leaf, r);
}

}  // namespace penstock
