// SPDX-License-Identifier: Apache-2.0
// One leaf of all rows of a batch: its layout in the batch, and its bytes.
#pragma once

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "dataplane/element/block.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

namespace penstock {

// Views of the leaf in each row. REQUIRES: at least one row.
using Column = absl::InlinedVector<Tensor, 16>;

struct ColumnPadding {
  Shape shape;   // of a row; unknown dimensions are padded to the longest row
  Tensor value;  // a scalar
};

// Returns the dimensions as text: "[2,3]".
std::string ShapeText(absl::Span<const int64_t> dims);

// Returns the layout of the leaf of a batch that `spec` describes. A dense leaf has rows of one
// shape or padded rows; a leaf may also be ragged or sparse. InvalidArgument names the row that
// does not fit. `padding` may be nullptr.
absl::StatusOr<LeafLayout> LayoutColumn(const Column& column, const TensorSpec& spec,
                                        const ColumnPadding* padding);

// Writes leaf `leaf` of a block with this layout.
void WriteColumn(const Column& column, const TensorSpec& spec, const LeafLayout& layout,
                 const ColumnPadding* padding, size_t leaf, BlockWriter& writer);

}  // namespace penstock
