// SPDX-License-Identifier: Apache-2.0
// Results whose values are all found in the input, at other places: transposed,
// repeated, reversed, padded, gathered.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "dataplane/dataset/expr/broadcast.h"
#include "dataplane/dataset/expr/op_run.h"
#include "penstock/tensor.h"

namespace penstock {

// Where the values along one axis of a result come from, as distances in the input,
// in values: first, first + step, …; or those of `table`, in which kFilling stands
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

// Values from one row of an axis to the next, for a dense tensor of these dims.
Dims StridesOf(absl::Span<const int64_t> dims);

// The tensor as it is: all places of all its axes.
AllPlaces PlacesOf(const Tensor& x);

// A table of `size` places in the arena. ResourceExhausted if it is too large.
absl::StatusOr<int64_t*> PlaceTable(OpRun& run, int64_t size);

// Makes output 0, of `dims`: its values, in order, are the input's at the sums of
// the axes' places, the last axis innermost; `filling` (a scalar; nullptr: zeros or
// empty strings) where one of them is kFilling. REQUIRES: as many as dims say.
absl::Status MoveValues(OpRun& run, const Tensor& x, absl::Span<const int64_t> dims,
                        const AllPlaces& axes, const Tensor* filling = nullptr);

// Makes output 0 a view of all values of `x` under other dims, of the same count.
absl::Status ViewAs(OpRun& run, const Tensor& x, absl::Span<const int64_t> dims);

}  // namespace penstock
