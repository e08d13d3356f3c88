// SPDX-License-Identifier: Apache-2.0
// Which epoch of a dataset an iterator is: each draws another order (Shuffle's
// reshuffle_each_iteration), as tf.data's iterators over one dataset do.
#pragma once

#include <algorithm>
#include <cstdint>

#include "penstock/dataset.h"

namespace penstock {

// RandomKey::repetition has room for so many.
inline constexpr int64_t kMostEpochs = int64_t{1} << 31;

// The number of the epoch that begins now: 0 for the first of this process. Counted for the
// dataset itself and for each node in it that draws anew in each epoch, so that ds.Take(5),
// made again for each epoch, does not begin with the same elements each time. Any thread.
int64_t BeginEpoch(const Dataset& dataset);
// An iterator of epoch `from` goes on in `to`, of a state: the next to begin is the one behind
// that, or behind what others have begun since `from`. Any thread.
void GoOnInEpoch(const Dataset& dataset, int64_t from, int64_t to);
// The number that is to begin next, where `next` was.
inline int64_t NextEpoch(int64_t next, int64_t from, int64_t to) {
  return next == from + 1 ? to + 1 : std::max(next, to + 1);
}

}  // namespace penstock
