// SPDX-License-Identifier: Apache-2.0
// Metrics of a worker (control/observe/metrics.h), over all its iterations.
#pragma once

#include <cstdint>

namespace penstock::worker {

// Counts an element that was handed to a link.
void CountSent(int64_t bytes);
// Counts elements that clients have confirmed as received.
void CountReceived(int64_t elements);

// For the windows of cross-trainer caches: counts an element that a trainer got. It was either
// already in the window (a hit), or prepared for this trainer.
void CountCacheQuery(bool hit);
// Counts elements that a trainer missed because they fell out of a window.
void CountSkipped(int64_t elements);
// Adds `bytes`, which may be negative, to the size of the windows' contents.
void CountCached(int64_t bytes);

}  // namespace penstock::worker
