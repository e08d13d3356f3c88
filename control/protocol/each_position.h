// SPDX-License-Identifier: Apache-2.0
// Visits the numbers of a set that contains positions, of partitions or readers, in a record.
#pragma once

#include <cstddef>

#include "control/protocol/index_set.h"

namespace penstock::protocol {

// A position as an element of a set of positions.
inline Index PositionOf(size_t at) {
  return static_cast<Index>(at);
}
// The set of one position.
inline IndexSet JustPosition(size_t at) {
  return IndexSet::Of(PositionOf(at), PositionOf(at) + 1);
}

// Returns whether `check` holds for each position in the set.
template <class Check>
bool HoldsForEach(const IndexSet& positions, const Check& check) {
  for (const IndexSet::Interval& interval : positions.intervals())
    for (Index at = interval.begin; at < interval.end; ++at)
      if (!check(static_cast<size_t>(at))) return false;
  return true;
}

// Calls `visit` with each position in the set, ascending.
template <class Visit>
void ForEach(const IndexSet& positions, const Visit& visit) {
  HoldsForEach(positions, [&](size_t at) {
    visit(at);
    return true;
  });
}

}  // namespace penstock::protocol
