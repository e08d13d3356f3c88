// SPDX-License-Identifier: Apache-2.0
// Reading in this process, with a say in where elements are made.
#pragma once

#include "absl/status/statusor.h"
#include "dataplane/memory/pool.h"
#include "penstock/dataset.h"
#include "penstock/iterator.h"

namespace penstock {

// As Dataset::MakeIterator(), with RunContext::output and output_ahead: where what is read is made,
// as far as the last node that does not hand it on makes it itself. `output` outlives the iterator.
// It is the dataset's epoch of that number.
absl::StatusOr<Iterator> MakeIteratorInto(Pool& output, const Dataset& dataset, uint64_t seed,
                                          int64_t epoch);

}  // namespace penstock
