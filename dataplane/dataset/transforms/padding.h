// SPDX-License-Identifier: Apache-2.0
// What rows are padded to, and with what: the options of PaddedBatch as
// attributes of a node.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/attr.h"
#include "dataplane/dataset/registry.h"
#include "penstock/batching.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

namespace penstock {

struct RowPadding {
  Spec row;                // of one row: known dimensions are padded to, others to the longest
  ConstantElement values;  // one scalar for each leaf
};

// Rows of `input` padded as the options say. InvalidArgument names the option and
// the component.
absl::StatusOr<RowPadding> MakePadding(const PaddedShapes& shapes, const PaddingValues& values,
                                       const Spec& input);

// One scalar for each leaf of `spec`, 0, false or "" where none is named.
absl::StatusOr<ConstantElement> MakePaddingValues(const PaddingValues& values, const Spec& spec);
// For values from outside.
absl::Status CheckPaddingValues(const Element& values, const Spec& spec);

// As the attributes "padded" and "padding_values".
std::vector<AttrRule> PaddingRules(bool required);
void AddPadding(const RowPadding& padding, Attrs& attrs);
// REQUIRES: both are there.
RowPadding PaddingOf(const Attrs& attrs);
// For padding from outside: whether rows of `input` can be padded so.
absl::Status CheckPadding(const RowPadding& padding, const Spec& input);

// The dims that rows of `dims` are padded to; InvalidArgument for a row that is
// larger than `padded`.
absl::StatusOr<std::vector<int64_t>> PaddedDims(absl::Span<const absl::Span<const int64_t>> rows,
                                                const Shape& padded);
// InvalidArgument unless a row of `dims` goes into `padded`.
absl::Status CheckFits(absl::Span<const int64_t> dims, const Shape& padded);

// Writes `value`, which is no string, into the front corner of a tensor of
// `dims` at `to` and fills the rest with `pad`. REQUIRES: it fits.
void WritePadded(const Tensor& value, absl::Span<const int64_t> dims, const Tensor& pad,
                 std::byte* to);
// Fills `memory` with a scalar that is no string.
void FillWith(const Tensor& scalar, absl::Span<std::byte> memory);

}  // namespace penstock
