// SPDX-License-Identifier: Apache-2.0
// The epoch of an iterator over a dataset. Each epoch draws a different order (Shuffle's
// reshuffle_each_iteration), as tf.data's iterators over one dataset do.
#pragma once

#include <algorithm>
#include <cstdint>

#include "penstock/dataset.h"

namespace penstock {

// The number of epochs that fit in RandomKey::repetition.
inline constexpr int64_t kMostEpochs = int64_t{1} << 31;

// Begins an epoch and returns its number: 0 for the first epoch in this process. Epochs are counted
// by the dataset itself and by each of its nodes that draws a new order in each epoch. A ds.Take(5)
// that is created again for each epoch therefore does not begin with the same elements each time.
// Any thread.
int64_t BeginEpoch(const Dataset& dataset);
// Moves an iterator from epoch `from` to epoch `to`, which a saved state names. The next epoch to
// begin is `to` + 1, or a later one if other iterators have begun epochs since `from`. Any thread.
void GoOnInEpoch(const Dataset& dataset, int64_t from, int64_t to);
// Returns the epoch that begins next after GoOnInEpoch(dataset, from, to), if epoch `next` would
// have begun next before that call.
inline int64_t NextEpoch(int64_t next, int64_t from, int64_t to) {
  return next == from + 1 ? to + 1 : std::max(next, to + 1);
}

}  // namespace penstock
