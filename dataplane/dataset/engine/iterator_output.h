// SPDX-License-Identifier: Apache-2.0
// Reading a dataset in this process into memory that the caller chooses.
#pragma once

#include "absl/status/statusor.h"
#include "dataplane/memory/pool.h"
#include "penstock/dataset.h"
#include "penstock/iterator.h"

namespace penstock {

// Does what Dataset::MakeIterator() does, but sets RunContext::output and output_ahead. The last
// node that makes elements, rather than passing them on, makes them in `output`. `output` outlives
// the iterator. The iterator reads the dataset's epoch number `epoch`.
absl::StatusOr<Iterator> MakeIteratorInto(Pool& output, const Dataset& dataset, uint64_t seed,
                                          int64_t epoch);

}  // namespace penstock
