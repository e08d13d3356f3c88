// SPDX-License-Identifier: Apache-2.0
// Errors in the rows of one batch. A batch stands or falls as a whole: the
// error of its first bad row stands in its place, its other rows are passed
// over, and so the batches behind it are the same with or without it.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "penstock/status.h"

namespace penstock {

class RowErrors {
 public:
  void Add(int64_t row, const absl::Status& error) {
    if (count_++ > 0 && row > row_) return;
    row_ = row;
    error_ = error;
  }

  // OK if there were none; else that of the lowest row, whatever came first.
  absl::Status ForBatch() const {
    if (count_ <= 1) return Annotate(error_, "row ", row_, " of a batch");
    return Annotate(error_, "row ", row_, " of a batch, in which ", count_, " rows failed");
  }

 private:
  int64_t count_ = 0;
  int64_t row_ = 0;
  absl::Status error_;
};

}  // namespace penstock
