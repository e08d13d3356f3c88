// SPDX-License-Identifier: Apache-2.0
// The errors in the rows of one batch. One bad row makes the whole batch an error: the error of the
// first bad row takes the batch's place, and the batch's other rows are skipped. Later batches are
// therefore the same with or without the error.
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

  // OK if there were no errors; otherwise the error of the lowest row, in whatever order the errors
  // were added.
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
