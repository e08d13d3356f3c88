// SPDX-License-Identifier: Apache-2.0
// Rows that one consumer has and others lack. As indices they are not adjacent, so each is its own
// interval.
#pragma once

#include <cstdint>

#include "control/protocol/index_set.h"

namespace penstock::protocol {

// How many rows one consumer may be ahead of another, according to their reports. Rows beyond that
// count as missing: they are sent again, and consumers that have them drop them. Readers that wait
// for each other never get nearly that far apart; the limit bounds the cost of a wrong report.
inline constexpr int64_t kMaxPartialRows = 1 << 20;

// Returns index_of(row) for the lowest of `rows`, at most kMaxPartialRows; index_of ascends.
// Returns a separate set, because adding the rows one by one to a larger set would move that set's
// intervals each time.
template <class IndexOf>
IndexSet IndicesOfPartialRows(const IndexSet& rows, const IndexOf& index_of) {
  IndexSet indices;
  int64_t left = kMaxPartialRows;
  for (const IndexSet::Interval& interval : rows.intervals()) {
    for (int64_t row = interval.begin; row < interval.end; ++row) {
      if (left-- == 0) return indices;
      indices.Add(index_of(row));
    }
  }
  return indices;
}

}  // namespace penstock::protocol
