// SPDX-License-Identifier: Apache-2.0
// NumPy's broadcasting: shapes are aligned at their last dimension, and a dimension of 1 is
// repeated.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/spec.h"

namespace penstock {

using Dims = absl::InlinedVector<int64_t, 6>;

// Returns the dims of the result. InvalidArgument names both arguments.
absl::StatusOr<Dims> BroadcastDims(absl::Span<const int64_t> a, absl::Span<const int64_t> b);
absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

// A walk over a result and up to three operands. It visits the result row by row. A row has
// row_length_ values, and from one value to the next, operand k moves by step(k) (0 or 1).
class BroadcastWalk {
 public:
  static constexpr int kMaxOperands = 3;
  // REQUIRES: every operand broadcasts to `result`.
  BroadcastWalk(absl::Span<const int64_t> result,
                absl::Span<const absl::Span<const int64_t>> operands);

  // Calls row(offsets, n, out): the next n results start at `out`. The values of operand k start at
  // offsets[k] and are step(k) apart.
  template <class Row>
  void ForEachRow(Row&& row) const {
    int64_t offsets[kMaxOperands] = {};
    absl::InlinedVector<int64_t, 6> at(axes_.size(), 0);
    if (empty_) return;
    for (int64_t out = 0;; out += row_length_) {
      row(offsets, row_length_, out);
      int axis = static_cast<int>(axes_.size()) - 1;
      for (; axis >= 0; --axis) {
        for (int k = 0; k < kMaxOperands; ++k) offsets[k] += axes_[axis].step[k];
        if (++at[axis] < axes_[axis].size) break;
        for (int k = 0; k < kMaxOperands; ++k) offsets[k] -= axes_[axis].step[k] * axes_[axis].size;
        at[axis] = 0;
      }
      if (axis < 0) return;
    }
  }
  int64_t step(int operand) const { return step_[operand]; }

 private:
  struct Axis {
    int64_t size = 1;
    int64_t step[kMaxOperands] = {};
  };
  absl::InlinedVector<Axis, 6> axes_;  // all but the innermost
  int64_t row_length_ = 1;
  int64_t step_[kMaxOperands] = {};
  bool empty_ = false;
};

}  // namespace penstock
