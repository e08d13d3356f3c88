// SPDX-License-Identifier: Apache-2.0
// Turns that one consumer has and others lack: as indices they do not lie side by side, so each
// is an interval of its own.
#pragma once

#include <cstdint>

#include "control/protocol/index_set.h"

namespace penstock::protocol {

// So many turns a consumer may be ahead of another in what is known of both; what it has
// further on counts as if it had not: it is sent again, and dropped where it is already. Far
// more than readers that wait for each other come apart, and a wrong report costs no more.
inline constexpr int64_t kMostLooseTurns = 1 << 20;

// Calls visit(turn) for the lowest of `turns`, at most kMostLooseTurns.
template <class Visit>
void ForEachLooseTurn(const IndexSet& turns, const Visit& visit) {
  int64_t left = kMostLooseTurns;
  for (const IndexSet::Interval& interval : turns.intervals()) {
    for (int64_t turn = interval.begin; turn < interval.end; ++turn) {
      if (left-- == 0) return;
      visit(turn);
    }
  }
}

}  // namespace penstock::protocol
