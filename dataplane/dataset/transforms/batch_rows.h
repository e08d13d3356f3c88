// SPDX-License-Identifier: Apache-2.0
// A batch taken apart along the first dimension of its leaves: views of its
// rows, nothing is copied.
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

// The spec of one row of elements of `batch`. InvalidArgument names a leaf that
// has no rows.
absl::StatusOr<Spec> RowSpecOf(const Spec& batch);

class BatchRows {
 public:
  // InvalidArgument where leaves have different numbers of rows, or a sparse
  // one does not give its values row by row.
  static absl::StatusOr<BatchRows> Of(Element batch);

  int64_t count() const { return count_; }
  const Element& batch() const { return batch_; }

  // Dims and offsets of views that do not lie in the batch as the view needs them.
  using Parts = std::deque<absl::InlinedVector<int64_t, 4>>;
  // Leaf `i` of row `r` < count(). Valid while this and `parts` live.
  Tensor Leaf(size_t i, int64_t r, Parts& parts) const;

 private:
  explicit BatchRows(Element batch) : batch_(std::move(batch)) {}

  Element batch_;
  int64_t count_ = 0;
};

}  // namespace penstock
