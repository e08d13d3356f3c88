// SPDX-License-Identifier: Apache-2.0
// How far the partitions of a coordinated read may go, so that no consumer comes to
// hold more than its receive budget. docs/exactly_once.md, rule 24.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "control/protocol/iteration_coordinator.h"

namespace penstock::protocol {

// Elements that each consumer may hold: the least receive budget that one has said, and 1
// before all have.
int64_t MinReceiveBudget(const IterationRecord& record, const IterationContext& context);

// Of a partition that has no further row: what it has left goes where the remainders go.
inline constexpr int64_t kAllRows = std::numeric_limits<int64_t>::max();

// Rows of each partition ([0] is partition 1) that may be sent, as far as that is
// known now. Never fewer than before, unless consumers went back.
std::vector<int64_t> RowsWithinBudget(const IterationRecord& record,
                                      const IterationContext& context);

// Its worker is told that it may send so many.
void NoteAllowed(int64_t rows, PartitionContext& context);

}  // namespace penstock::protocol
