// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/batch/column.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/dataset/engine/row_view.h"
#include "dataplane/dataset/transforms/batch/padding.h"
#include "dataplane/element/copy_bytes.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Kind = TensorSpec::Kind;

uint64_t StringBytes(const Column& column) {
  if (column[0].dtype() != kString) return 0;
  uint64_t bytes = 0;
  for (const Tensor& row : column)
    for (int64_t s = 0; s < row.element_count(); ++s) bytes += row.string(s).size();
  return bytes;
}

// Lays out dense rows of one shape.
absl::StatusOr<LeafLayout> LayoutDense(const Column& column) {
  LeafLayout layout;
  layout.dims.push_back(static_cast<int64_t>(column.size()));
  layout.dims.insert(layout.dims.end(), column[0].dims().begin(), column[0].dims().end());
  for (size_t r = 1; r < column.size(); ++r) {
    if (column[r].dims() == column[0].dims()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("row ", r, " of a batch has shape ", ShapeText(column[r].dims()),
                     ", but row 0 has shape ", ShapeText(column[0].dims()),
                     "; PaddedBatch and RaggedBatch take rows of different shapes"));
  }
  return layout;
}

// Lays out the flat values of rows of a ragged batch. The dimensions after the first `ragged` ones
// must be equal in all rows.
absl::Status LayoutFlatValues(const Column& column, size_t ragged, LeafLayout& layout) {
  int64_t values = 0;
  for (size_t r = 0; r < column.size(); ++r) {
    const absl::Span<const int64_t> dims = column[r].dims();
    if (dims.size() < ragged || dims.subspan(ragged) != column[0].dims().subspan(ragged)) {
      return absl::InvalidArgumentError(
          absl::StrCat("row ", r, " of a ragged batch has values of shape ", ShapeText(dims),
                       ", but row 0 has ", ShapeText(column[0].dims()),
                       "; they may differ in the first ", ragged, " dimensions only"));
    }
    values += Product(dims.first(ragged));
  }
  layout.dims.push_back(values);
  const absl::Span<const int64_t> inner = column[0].dims().subspan(ragged);
  layout.dims.insert(layout.dims.end(), inner.begin(), inner.end());
  return absl::OkStatus();
}

// Level 0 has one split per row. Level l has one split per row of level l - 1, over all rows.
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
                                                     ", but row 0 has rank ", rank));
    }
    values += column[r].dim(0);
  }
  LeafLayout layout;
  layout.kind = Kind::kSparse;
  layout.dims.push_back(values);
  layout.part_counts = {values * (static_cast<int64_t>(rank) + 1), static_cast<int64_t>(rank) + 1};
  return layout;
}

// Lays out dense rows that are padded to one shape.
absl::StatusOr<LeafLayout> LayoutPadded(const Column& column, const Shape& padded) {
  absl::InlinedVector<absl::Span<const int64_t>, 16> rows;
  for (const Tensor& row : column) rows.push_back(row.dims());
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims, PaddedDims(rows, padded));
  LeafLayout layout;
  layout.dims.push_back(static_cast<int64_t>(column.size()));
  layout.dims.insert(layout.dims.end(), dims.begin(), dims.end());
  return layout;
}

absl::StatusOr<LeafLayout> LayoutByKind(const Column& column, const TensorSpec& spec,
                                        const Shape* padded) {
  if (spec.kind == Kind::kRagged) return LayoutRagged(column, spec.ragged_rank);
  if (spec.kind == Kind::kSparse) return LayoutSparse(column);
  return padded == nullptr ? LayoutDense(column) : LayoutPadded(column, *padded);
}

// Returns the size in bytes of the strings that pad a column.
uint64_t PaddingBytes(const Column& column, const LeafLayout& layout, const Tensor& pad) {
  int64_t strings = Shape({layout.dims.begin(), layout.dims.end()}).ElementCount();
  if (strings > (int64_t{1} << 32)) return uint64_t{1} << 40;  // more than a block can hold
  for (const Tensor& row : column) strings -= row.element_count();
  return strings * pad.string().size();
}

// Copies the values of all rows one after another.
void CopyColumnValues(const Column& column, size_t leaf, BlockWriter& writer) {
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
    CopyBytes(to, row.raw(), row.byte_count());
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

// Writes strings from number `next` on. Puts the strings of `value` from number `from` on, which
// have the dims `own`, into the front corner of `dims`.
void WritePaddedStrings(const Tensor& value, int64_t from, absl::Span<const int64_t> own,
                        absl::Span<const int64_t> dims, std::string_view pad, size_t leaf,
                        int64_t& next, BlockWriter& writer) {
  if (dims.empty()) return writer.SetString(leaf, next++, value.string(from));
  const int64_t step = Product(own.subspan(1));
  for (int64_t i = 0; i < own[0]; ++i) {
    WritePaddedStrings(value, from + i * step, own.subspan(1), dims.subspan(1), pad, leaf, next,
                       writer);
  }
  for (int64_t i = (dims[0] - own[0]) * Product(dims.subspan(1)); i > 0; --i)
    writer.SetString(leaf, next++, pad);
}

void WritePaddedRows(const Column& column, const Tensor& pad, size_t leaf, BlockWriter& writer,
                     absl::Span<const int64_t> dims) {
  if (pad.dtype() == kString) {
    int64_t next = 0;
    for (const Tensor& row : column)
      WritePaddedStrings(row, 0, row.dims(), dims, pad.string(), leaf, next, writer);
    return;
  }
  const size_t row_bytes = Product(dims) * SizeOf(pad.dtype());
  std::byte* to = writer.data(leaf).data();
  for (const Tensor& row : column) {
    WritePadded(row, dims, pad, to);
    to += row_bytes;
  }
}

}  // namespace

std::string ShapeText(absl::Span<const int64_t> dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

absl::StatusOr<LeafLayout> LayoutColumn(const Column& column, const TensorSpec& spec,
                                        const ColumnPadding* padding) {
  size_t present = 0;
  for (const Tensor& row : column) present += row.present();
  if (present == 0) return LeafLayout{};
  if (present < column.size()) {
    return absl::InvalidArgumentError(absl::StrCat("is absent in ", column.size() - present, " of ",
                                                   column.size(), " rows of a batch"));
  }
  ASSIGN_OR_RETURN(LeafLayout layout,
                   LayoutByKind(column, spec, padding == nullptr ? nullptr : &padding->shape));
  layout.dtype = spec.dtype;
  layout.string_bytes = StringBytes(column);
  if (padding != nullptr && spec.dtype == kString)
    layout.string_bytes += PaddingBytes(column, layout, padding->value);
  return layout;
}

void WriteColumn(const Column& column, const TensorSpec& spec, const LeafLayout& layout,
                 const ColumnPadding* padding, size_t leaf, BlockWriter& writer) {
  if (!column[0].present()) return;
  if (padding != nullptr) {
    const absl::Span<const int64_t> dims = layout.dims;
    return WritePaddedRows(column, padding->value, leaf, writer, dims.subspan(1));
  }
  if (spec.kind == Kind::kSparse) WriteSparse(column, leaf, writer);
  if (spec.kind == Kind::kRagged) {
    column[0].kind() == Kind::kDense ? WriteSplitsOfDense(column, leaf, spec.ragged_rank, writer)
                                     : WriteSplitsOfRagged(column, leaf, spec.ragged_rank, writer);
  }
  CopyColumnValues(column, leaf, writer);
}

}  // namespace penstock
