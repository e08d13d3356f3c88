// SPDX-License-Identifier: Apache-2.0
// Rows that one consumer has and others lack: as indices they do not lie side by side, so each
// is an interval of its own.
#pragma once

#include <cstdint>

#include "control/protocol/index_set.h"

namespace penstock::protocol {

// So many rows a consumer may be ahead of another in what is known of both; what it has
// further on counts as if it had not: it is sent again, and dropped where it is already. Far
// more than readers that wait for each other come apart, and a wrong report costs no more.
inline constexpr int64_t kMaxPartialRows = 1 << 20;

// index_of(row), which ascends, of the lowest of `rows`, at most kMaxPartialRows. A set of its
// own: adding them one by one to those of others would move these each time.
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
