// SPDX-License-Identifier: Apache-2.0
// Metrics of a worker (control/observe/metrics.h), summed over its iterations.
#pragma once

#include <cstdint>

namespace penstock::worker {

// Counts an element that was handed to a link.
void CountSent(int64_t bytes);
// Counts elements that clients have confirmed as received.
void CountReceived(int64_t elements);

// Counts an element that a trainer got from a window of a cross-trainer cache. `hit`: the element
// was already in the window; else it was prepared for this trainer.
void CountCacheQuery(bool hit);
// Counts elements that a trainer missed because they fell out of a window.
void CountSkipped(int64_t elements);
// Adds `bytes`, which may be negative, to the size of the windows' contents.
void CountCached(int64_t bytes);

}  // namespace penstock::worker
