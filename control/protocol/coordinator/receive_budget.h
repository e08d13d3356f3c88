// SPDX-License-Identifier: Apache-2.0
// Decides how many rows the partitions of a coordinated read may send, so that no consumer holds
// more than its receive budget. docs/exactly_once.md, rule 24.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "control/protocol/coordinator/iteration_coordinator.h"

namespace penstock::protocol {

// Returns the number of elements that each consumer may hold: the smallest receive budget that a
// consumer has sent, but 1 until all consumers have reported.
int64_t MinReceiveBudget(const IterationRecord& record, const IterationContext& context);

// For a partition that has no further row: all its other elements belong to its remainder.
inline constexpr int64_t kAllRows = std::numeric_limits<int64_t>::max();

// Returns, for each partition ([0] is partition 1), the number of rows that may be sent according
// to the reports so far. The number never decreases, unless consumers have gone back to an earlier
// state.
std::vector<int64_t> RowsWithinBudget(const IterationRecord& record,
                                      const IterationContext& context);

// Records that the partition's worker is allowed to send this many rows.
void NoteAllowed(int64_t rows, PartitionContext& context);

}  // namespace penstock::protocol
