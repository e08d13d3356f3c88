// SPDX-License-Identifier: Apache-2.0
// A batch split along the first dimension of its leaves into views of its rows, without a copy.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "penstock/element.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

namespace penstock {

// Returns the spec of one row of elements of `batch`. InvalidArgument names a leaf that has no
// rows.
absl::StatusOr<Spec> RowSpecOf(const Spec& batch);

class BatchRows {
 public:
  // InvalidArgument if leaves have different numbers of rows, or if the values of a sparse leaf are
  // not ordered by row.
  static absl::StatusOr<BatchRows> Of(Element batch);

  int64_t count() const { return count_; }
  const Element& batch() const { return batch_; }

  // Dims and offsets of views, if the batch does not contain them in the form that a view needs.
  using Parts = std::deque<absl::InlinedVector<int64_t, 4>>;
  // Leaf `i` of row `r`. Valid while this object and `parts` live. REQUIRES: r < count().
  Tensor Leaf(size_t i, int64_t r, Parts& parts) const;

 private:
  explicit BatchRows(Element batch) : batch_(std::move(batch)) {}

  Element batch_;
  int64_t count_ = 0;
};

}  // namespace penstock
