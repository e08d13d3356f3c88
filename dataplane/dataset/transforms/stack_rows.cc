// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/stack_rows.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/status.h"

namespace penstock {
namespace {

using Column = absl::InlinedVector<Tensor, 16>;  // one leaf of all rows
using Kind = TensorSpec::Kind;

std::string ShapeText(absl::Span<const int64_t> dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

int64_t Product(absl::Span<const int64_t> dims) {
  int64_t product = 1;
  for (int64_t dim : dims) product *= dim;
  return product;
}

uint64_t StringBytes(const Column& column) {
  if (column[0].dtype() != kString) return 0;
  uint64_t bytes = 0;
  for (const Tensor& row : column)
    for (int64_t s = 0; s < row.element_count(); ++s) bytes += row.string(s).size();
  return bytes;
}

// Dense rows of one shape.
absl::StatusOr<LeafLayout> LayoutDense(const Column& column) {
  LeafLayout layout;
  layout.dims.push_back(static_cast<int64_t>(column.size()));
  layout.dims.insert(layout.dims.end(), column[0].dims().begin(), column[0].dims().end());
  for (size_t r = 1; r < column.size(); ++r) {
    if (column[r].dims() == column[0].dims()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "row ", r, " of a batch has shape ", ShapeText(column[r].dims()), ", row 0 has shape ",
        ShapeText(column[0].dims()),
        "; RaggedBatch takes rows of different shapes, or make them equal with a Map"));
  }
  return layout;
}

// The flat values of rows that go into a ragged batch: what lies behind their
// first `ragged` dimensions must be equal.
absl::Status LayoutFlatValues(const Column& column, size_t ragged, LeafLayout& layout) {
  int64_t values = 0;
  for (size_t r = 0; r < column.size(); ++r) {
    const absl::Span<const int64_t> dims = column[r].dims();
    if (dims.size() < ragged || dims.subspan(ragged) != column[0].dims().subspan(ragged)) {
      return absl::InvalidArgumentError(
          absl::StrCat("row ", r, " of a ragged batch has values of shape ", ShapeText(dims),
                       ", row 0 has ", ShapeText(column[0].dims()),
                       "; they may differ in the first ", ragged, " dimensions only"));
    }
    values += Product(dims.first(ragged));
  }
  layout.dims.push_back(values);
  const absl::Span<const int64_t> inner = column[0].dims().subspan(ragged);
  layout.dims.insert(layout.dims.end(), inner.begin(), inner.end());
  return absl::OkStatus();
}

// Level 0 has a split per row; level l one for each row of level l - 1 in all rows.
absl::StatusOr<LeafLayout> LayoutRagged(const Column& column, int levels) {
  LeafLayout layout;
  layout.kind = Kind::kRagged;
  layout.part_counts.push_back(static_cast<int64_t>(column.size()) + 1);
  const bool dense = column[0].kind() == Kind::kDense;
  RETURN_IF_ERROR(LayoutFlatValues(column, dense ? levels : 1, layout));
  for (int level = 1; level < levels; ++level) {
    int64_t count = 1;
    for (const Tensor& row : column)
      count += dense ? Product(row.dims().first(level))
                     : static_cast<int64_t>(row.row_splits(level - 1).size()) - 1;
    layout.part_counts.push_back(count);
  }
  return layout;
}

absl::StatusOr<LeafLayout> LayoutSparse(const Column& column) {
  const size_t rank = column[0].dense_shape().size();
  int64_t values = 0;
  for (size_t r = 0; r < column.size(); ++r) {
    if (column[r].dense_shape().size() != rank) {
      return absl::InvalidArgumentError(absl::StrCat("row ", r, " of a batch has rank ",
                                                     column[r].dense_shape().size(),
                                                     ", row 0 has rank ", rank));
    }
    values += column[r].dim(0);
  }
  LeafLayout layout;
  layout.kind = Kind::kSparse;
  layout.dims.push_back(values);
  layout.part_counts = {values * (static_cast<int64_t>(rank) + 1), static_cast<int64_t>(rank) + 1};
  return layout;
}

absl::StatusOr<LeafLayout> LayoutColumn(const Column& column, const TensorSpec& spec) {
  size_t present = 0;
  for (const Tensor& row : column) present += row.present();
  if (present == 0) return LeafLayout{};
  if (present < column.size()) {
    return absl::InvalidArgumentError(absl::StrCat("is left out in ", column.size() - present,
                                                   " of ", column.size(), " rows of a batch"));
  }
  absl::StatusOr<LeafLayout> layout = spec.kind == Kind::kDense ? LayoutDense(column)
                                      : spec.kind == Kind::kRagged
                                          ? LayoutRagged(column, spec.ragged_rank)
                                          : LayoutSparse(column);
  if (!layout.ok()) return layout;
  layout->dtype = spec.dtype;
  layout->string_bytes = StringBytes(column);
  return layout;
}

// The values of all rows, one behind the other.
void CopyValues(const Column& column, size_t leaf, BlockWriter& writer) {
  if (column[0].dtype() == kString) {
    int64_t next = 0;
    for (const Tensor& row : column)
      for (int64_t s = 0; s < row.element_count(); ++s)
        writer.SetString(leaf, next++, row.string(s));
    return;
  }
  std::byte* to = writer.data(leaf).data();
  for (const Tensor& row : column) {
    if (row.byte_count() == 0) continue;
    std::memcpy(to, row.raw(), row.byte_count());
    to += row.byte_count();
  }
}

void WriteSplitsOfDense(const Column& column, size_t leaf, int levels, BlockWriter& writer) {
  for (int level = 0; level < levels; ++level) {
    const absl::Span<int64_t> splits = writer.part(leaf, level);
    size_t next = 0;
    int64_t end = 0;
    splits[next++] = 0;
    for (const Tensor& row : column)
      for (int64_t i = Product(row.dims().first(level)); i > 0; --i)
        splits[next++] = end += row.dim(level);
  }
}

void WriteSplitsOfRagged(const Column& column, size_t leaf, int levels, BlockWriter& writer) {
  absl::Span<int64_t> splits = writer.part(leaf, 0);
  splits[0] = 0;
  for (size_t r = 0; r < column.size(); ++r)
    splits[r + 1] = splits[r] + static_cast<int64_t>(column[r].row_splits(0).size()) - 1;
  for (int level = 1; level < levels; ++level) {
    splits = writer.part(leaf, level);
    size_t next = 0;
    int64_t end = 0;
    splits[next++] = 0;
    for (const Tensor& row : column) {
      const absl::Span<const int64_t> its = row.row_splits(level - 1);
      for (size_t i = 1; i < its.size(); ++i) splits[next++] = end + its[i];
      end += its.back();
    }
  }
}

void WriteSparse(const Column& column, size_t leaf, BlockWriter& writer) {
  const size_t rank = column[0].dense_shape().size();
  const absl::Span<int64_t> indices = writer.part(leaf, 0);
  const absl::Span<int64_t> shape = writer.part(leaf, 1);
  std::fill(shape.begin(), shape.end(), 0);
  shape[0] = static_cast<int64_t>(column.size());
  size_t next = 0;
  for (size_t r = 0; r < column.size(); ++r) {
    const absl::Span<const int64_t> its = column[r].indices();
    for (size_t i = 0; i < its.size(); ++i) {
      if (i % rank == 0) indices[next++] = static_cast<int64_t>(r);
      indices[next++] = its[i];
    }
    for (size_t d = 0; d < rank; ++d)
      shape[d + 1] = std::max(shape[d + 1], column[r].dense_shape()[d]);
  }
}

void WriteColumn(const Column& column, const TensorSpec& spec, size_t leaf, BlockWriter& writer) {
  if (!column[0].present()) return;
  if (spec.kind == Kind::kSparse) WriteSparse(column, leaf, writer);
  if (spec.kind == Kind::kRagged) {
    column[0].kind() == Kind::kDense ? WriteSplitsOfDense(column, leaf, spec.ragged_rank, writer)
                                     : WriteSplitsOfRagged(column, leaf, spec.ragged_rank, writer);
  }
  CopyValues(column, leaf, writer);
}

}  // namespace

absl::StatusOr<Element> StackRows(Pool& pool, absl::Span<const Element> rows, const Spec& batch) {
  const size_t leaves = batch.leaves().size();
  std::vector<Column> columns(leaves);
  std::vector<LeafLayout> layouts(leaves);
  for (size_t i = 0; i < leaves; ++i) {
    columns[i].reserve(rows.size());
    for (const Element& row : rows) columns[i].push_back(row.tensor(i));
    absl::StatusOr<LeafLayout> layout = LayoutColumn(columns[i], batch.leaves()[i]);
    if (!layout.ok()) {
      const std::string name = batch.LeafName(i);
      return absl::Status(layout.status().code(), absl::StrCat(name.empty() ? "the element" : name,
                                                               ": ", layout.status().message()));
    }
    layouts[i] = *std::move(layout);
  }
  ASSIGN_OR_RETURN(const BlockLayout layout, BlockLayout::Of(layouts));
  ASSIGN_OR_RETURN(OpenBlock block, NewBlock(pool, layout, batch));
  for (size_t i = 0; i < leaves; ++i) WriteColumn(columns[i], batch.leaves()[i], i, block.writer);
  return std::move(block).Seal(batch);
}

}  // namespace penstock
