// SPDX-License-Identifier: Apache-2.0
// Rows that one consumer has and others lack. The indices of such rows are not adjacent, so each
// index is an interval of its own.
#pragma once

#include <cstdint>

#include "control/protocol/index_set.h"

namespace penstock::protocol {

// The maximum number of rows by which one consumer may be ahead of another, according to their
// reports. Rows beyond this limit count as missing: they are sent again, and consumers that have
// them drop them. The limit bounds the cost of a wrong report. Consumers that wait for each other
// never get nearly that far apart.
inline constexpr int64_t kMaxPartialRows = 1 << 20;

// Returns the set of index_of(row) for the lowest `rows`, at most kMaxPartialRows of them.
// REQUIRES: index_of ascends. The result is a separate set, because adding indices one by one to a
// larger set would move the larger set's intervals each time.
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
