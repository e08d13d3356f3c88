// SPDX-License-Identifier: Apache-2.0
// One leaf of all rows of a batch: the layout of what they become, and its bytes.
#pragma once

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "dataplane/element/block.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

namespace penstock {

// Views of the leaf in each row; there is at least one.
using Column = absl::InlinedVector<Tensor, 16>;

struct ColumnPadding {
  Shape shape;   // of a row: known dimensions are padded to, others to the longest row
  Tensor value;  // a scalar
};

// "[2,3]".
std::string ShapeText(absl::Span<const int64_t> dims);

// The layout of the leaf of a batch, which `spec` describes: dense, then rows of
// one shape or padded ones, ragged or sparse. InvalidArgument names the row that
// does not fit. `padding` may be nullptr.
absl::StatusOr<LeafLayout> LayoutColumn(const Column& column, const TensorSpec& spec,
                                        const ColumnPadding* padding);

// Writes leaf number `leaf` of a block that was laid out so.
void WriteColumn(const Column& column, const TensorSpec& spec, const LeafLayout& layout,
                 const ColumnPadding* padding, size_t leaf, BlockWriter& writer);

}  // namespace penstock
