// SPDX-License-Identifier: Apache-2.0
// A node that cuts each batch into parts whose sizes differ by at most one row, and returns some of
// these parts.
#pragma once

#include <cstdint>

#include "penstock/dataset.h"

namespace penstock::replica {

struct Cut {
  int64_t parts = 1;  // per batch; the first parts may have one row more than the others
  int64_t first = 0;  // returns parts [first, first + count)
  int64_t count = 1;
  int64_t whole_rows = 0;  // > 0: batches with any other number of rows are dropped
};

// Cuts the batches of `dataset`. An error in place of a batch is returned once for each of its
// parts.
Dataset CutBatch(const Dataset& dataset, const Cut& cut);

}  // namespace penstock::replica
