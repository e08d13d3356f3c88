// SPDX-License-Identifier: Apache-2.0
// Results whose values are all values of the input, at other places: transposed, repeated,
// reversed, padded, gathered.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "dataplane/dataset/expr/broadcast.h"
#include "dataplane/dataset/expr/op_run.h"
#include "penstock/tensor.h"

namespace penstock {

// The places in the input from which the values along one axis of a result come, as offsets counted
// in values. They are first, first + step, …; or the entries of `table`, in which kFilling stands
// for no value of the input.
struct AxisPlaces {
  static constexpr int64_t kFilling = -1;

  int64_t size = 1;
  int64_t first = 0;
  int64_t step = 0;
  const int64_t* table = nullptr;

  int64_t operator[](int64_t i) const { return table == nullptr ? first + i * step : table[i]; }
};
using AllPlaces = absl::InlinedVector<AxisPlaces, 6>;

// Returns the number of values from one row of an axis to the next, for a dense tensor of these
// dims.
Dims StridesOf(absl::Span<const int64_t> dims);

// Returns the axes of `x` with all their places; they give `x` unchanged.
AllPlaces PlacesOf(const Tensor& x);

// Returns a table of `size` places in the arena. ResourceExhausted if it is too large.
absl::StatusOr<int64_t*> PlaceTable(OpRun& run, int64_t size);

// Makes output 0, with these `dims`. Its values, in order, are the input's values at the sums of
// the axes' places, the last axis innermost. If one of the places is kFilling, the value is
// `filling` (a scalar; nullptr: zeros or empty strings). REQUIRES: the axes give as many values as
// `dims`.
absl::Status MoveValues(OpRun& run, const Tensor& x, absl::Span<const int64_t> dims,
                        const AllPlaces& axes, const Tensor* filling = nullptr);

// Makes output 0 a view of all values of `x` with different dims of the same count.
absl::Status ViewAs(OpRun& run, const Tensor& x, absl::Span<const int64_t> dims);

}  // namespace penstock
