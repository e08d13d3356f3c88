// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/batch/join_rows.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/dataset/engine/row_view.h"
#include "dataplane/dataset/transforms/batch/batch_spec.h"
#include "dataplane/dataset/transforms/batch/column.h"
#include "dataplane/element/copy_bytes.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Kind = TensorSpec::Kind;

// One leaf of the batch: as pieces where rows are contiguous, else row by row.
struct JoinedLeaf {
  std::vector<Tensor> pieces;
  Column rows;
  LeafLayout layout;
};

absl::Status LayoutPieces(absl::Span<const RowRange> ranges, size_t i, DType dtype,
                          JoinedLeaf& leaf) {
  for (const RowRange& range : ranges) leaf.pieces.push_back(range.rows->batch().tensor(i));
  const absl::Span<const int64_t> inner = leaf.pieces[0].dims().subspan(1);
  int64_t rows = 0;
  for (size_t p = 0; p < ranges.size(); ++p) {
    const absl::Span<const int64_t> its = leaf.pieces[p].dims().subspan(1);
    if (its != inner) {
      return absl::InvalidArgumentError(absl::StrCat("rows of shapes ", ShapeText(inner), " and ",
                                                     ShapeText(its), " do not fit into one batch"));
    }
    rows += ranges[p].to - ranges[p].from;
  }
  leaf.layout.dtype = dtype;
  leaf.layout.dims.push_back(rows);
  leaf.layout.dims.insert(leaf.layout.dims.end(), inner.begin(), inner.end());
  return absl::OkStatus();
}

void WritePieces(absl::Span<const RowRange> ranges, const JoinedLeaf& leaf, std::byte* to) {
  for (size_t p = 0; p < ranges.size(); ++p) {
    const Tensor& piece = leaf.pieces[p];
    const size_t row_bytes = Product(piece.dims().subspan(1)) * SizeOf(piece.dtype());
    const size_t bytes = (ranges[p].to - ranges[p].from) * row_bytes;
    if (bytes == 0) continue;
    CopyBytes(to, static_cast<const std::byte*>(piece.raw()) + ranges[p].from * row_bytes, bytes);
    to += bytes;
  }
}

absl::Status LayoutLeaf(absl::Span<const RowRange> ranges, size_t i, const TensorSpec& spec,
                        BatchRows::Parts& parts, JoinedLeaf& leaf) {
  if (spec.kind == Kind::kDense && spec.dtype != kString && !spec.optional)
    return LayoutPieces(ranges, i, spec.dtype, leaf);
  for (const RowRange& range : ranges)
    for (int64_t r = range.from; r < range.to; ++r)
      leaf.rows.push_back(range.rows->Leaf(i, r, parts));
  ASSIGN_OR_RETURN(leaf.layout, LayoutColumn(leaf.rows, spec, nullptr));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Element> JoinRows(Pool& pool, absl::Span<const RowRange> ranges, const Spec& spec) {
  BatchRows::Parts parts;
  std::vector<JoinedLeaf> leaves(spec.leaves().size());
  std::vector<LeafLayout> layouts;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const absl::Status laid_out = LayoutLeaf(ranges, i, spec.leaves()[i], parts, leaves[i]);
    if (!laid_out.ok()) {
      return absl::Status(laid_out.code(), absl::StrCat(ComponentName(spec, i), ": ",
                                                        std::string(laid_out.message())));
    }
    layouts.push_back(leaves[i].layout);
  }
  ASSIGN_OR_RETURN(const BlockLayout layout, BlockLayout::Of(layouts));
  ASSIGN_OR_RETURN(OpenBlock block, NewBlock(pool, layout, spec));
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].pieces.empty()) {
      WriteColumn(leaves[i].rows, spec.leaves()[i], layouts[i], nullptr, i, block.writer);
    } else {
      WritePieces(ranges, leaves[i], block.writer.data(i).data());
    }
  }
  return std::move(block).Seal(spec);
}

absl::StatusOr<Element> NoRows(Pool& pool, const Spec& spec) {
  std::vector<LeafLayout> layouts;
  for (const TensorSpec& leaf : spec.leaves()) {
    LeafLayout& layout = layouts.emplace_back();
    if (leaf.optional) continue;  // absent
    layout.dtype = leaf.dtype;
    layout.kind = leaf.kind;
    layout.dims.push_back(0);
    const int rank = leaf.shape.has_rank() ? leaf.shape.rank() : 1;
    if (leaf.kind == Kind::kSparse) {
      layout.part_counts = {0, rank};
      continue;
    }
    for (int d = leaf.ragged_rank + 1; d < rank; ++d)
      layout.dims.push_back(std::max<int64_t>(leaf.shape.dim(d), 0));
    layout.part_counts.assign(leaf.ragged_rank, 1);
  }
  ASSIGN_OR_RETURN(const BlockLayout layout, BlockLayout::Of(layouts));
  ASSIGN_OR_RETURN(OpenBlock block, NewBlock(pool, layout, spec));
  for (size_t i = 0; i < layouts.size(); ++i) {
    for (int p = 0; p < static_cast<int>(layouts[i].part_counts.size()); ++p) {
      const absl::Span<int64_t> part = block.writer.part(i, p);
      std::fill(part.begin(), part.end(), 0);
    }
    const Shape& shape = spec.leaves()[i].shape;
    if (layouts[i].kind != Kind::kSparse || layouts[i].dtype == DType::kInvalid) continue;
    for (int d = 1; shape.has_rank() && d < shape.rank(); ++d)
      block.writer.part(i, 1)[d] = std::max<int64_t>(shape.dim(d), 0);
  }
  return std::move(block).Seal(spec);
}

absl::StatusOr<Element> BatchOf(Pool& pool, absl::Span<const RowRange> ranges, const Spec& spec) {
  if (ranges.empty()) return NoRows(pool, spec);
  const RowRange& first = ranges[0];
  if (ranges.size() == 1 && first.from == 0 && first.to == first.rows->count()) {
    const Element& whole = first.rows->batch();
    return Element(whole.loan().Share(), whole.block().data(), spec);
  }
  return JoinRows(pool, ranges, spec);
}

}  // namespace penstock
