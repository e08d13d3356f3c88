// SPDX-License-Identifier: Apache-2.0
// How far the partitions of a coordinated read may go, so that no consumer holds more than its
// receive budget. docs/exactly_once.md, rule 24.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "control/protocol/coordinator/iteration_coordinator.h"

namespace penstock::protocol {

// Returns how many elements each consumer may hold: the smallest receive budget that any of them
// has sent, and 1 before all have reported.
int64_t MinReceiveBudget(const IterationRecord& record, const IterationContext& context);

// For a partition that has no further row: its last elements go where the remainders go.
inline constexpr int64_t kAllRows = std::numeric_limits<int64_t>::max();

// Returns the rows of each partition ([0] is partition 1) that may be sent, according to the
// reports so far. Never fewer than before, unless consumers went back.
std::vector<int64_t> RowsWithinBudget(const IterationRecord& record,
                                      const IterationContext& context);

// Records that the worker is allowed this many rows.
void NoteAllowed(int64_t rows, PartitionContext& context);

}  // namespace penstock::protocol
