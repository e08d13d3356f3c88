// SPDX-License-Identifier: Apache-2.0
// The shapes and values that rows are padded to: the options of PaddedBatch as node attributes.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/expr/attr.h"
#include "dataplane/dataset/graph/registry.h"
#include "penstock/batching.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

namespace penstock {

struct RowPadding {
  Spec row;                // of one row; unknown dimensions are padded to the longest row
  ConstantElement values;  // one scalar per leaf
};

// Makes the padding of rows of `input` from the options. InvalidArgument names the option and the
// component.
absl::StatusOr<RowPadding> MakePadding(const PaddedShapes& shapes, const PaddingValues& values,
                                       const Spec& input);

// Returns one scalar per leaf of `spec`: 0, false or "" where `values` names none.
absl::StatusOr<ConstantElement> MakePaddingValues(const PaddingValues& values, const Spec& spec);
// Checks untrusted values.
absl::Status CheckPaddingValues(const Element& values, const Spec& spec);

// The attributes are "padded" and "padding_values".
std::vector<AttrRule> PaddingRules(bool required);
void AddPadding(const RowPadding& padding, Attrs& attrs);
// REQUIRES: both attributes are present.
RowPadding PaddingOf(const Attrs& attrs);
// Checks untrusted padding: whether rows of `input` can be padded this way.
absl::Status CheckPadding(const RowPadding& padding, const Spec& input);

// Returns the dims that the rows are padded to. InvalidArgument if a row is larger than `padded`.
absl::StatusOr<std::vector<int64_t>> PaddedDims(absl::Span<const absl::Span<const int64_t>> rows,
                                                const Shape& padded);
// InvalidArgument if a row of `dims` does not fit into `padded`.
absl::Status CheckFits(absl::Span<const int64_t> dims, const Shape& padded);

// Writes `value` into the front corner of a tensor of `dims` at `to`, and fills the rest with
// `pad`. REQUIRES: `value` fits and is not a string.
void WritePadded(const Tensor& value, absl::Span<const int64_t> dims, const Tensor& pad,
                 std::byte* to);
// Fills `memory` with copies of `scalar`. REQUIRES: `scalar` is not a string.
void FillWith(const Tensor& scalar, absl::Span<std::byte> memory);

}  // namespace penstock
