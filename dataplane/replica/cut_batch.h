// SPDX-License-Identifier: Apache-2.0
// A node that cuts each batch into parts of equal size but for one row, and
// gives some of them.
#pragma once

#include <cstdint>

#include "penstock/dataset.h"

namespace penstock::replica {

struct Cut {
  int64_t parts = 1;  // that each batch is cut into; the first may have a row more
  int64_t first = 0;  // of these are given [first, first + count)
  int64_t count = 1;
  int64_t whole_rows = 0;  // > 0: batches of other numbers of rows are left out
};

// An error in a batch's place stands in the place of each of its parts.
Dataset CutBatch(const Dataset& dataset, const Cut& cut);

}  // namespace penstock::replica
