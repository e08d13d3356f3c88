// SPDX-License-Identifier: Apache-2.0
// Metrics of a worker (control/observe/metrics.h), over all its iterations.
#pragma once

#include <cstdint>

namespace penstock::worker {

// An element was handed to a link.
void CountSent(int64_t bytes);
// Clients confirmed that they received this many elements.
void CountReceived(int64_t elements);

// For the windows of cross-trainer caches: a trainer got an element that was already in the window
// (a hit), or one that was prepared for it.
void CountCacheQuery(bool hit);
// A trainer missed this many elements that fell out of a window.
void CountSkipped(int64_t elements);
// Adds `bytes`, which may be negative, to the size of the windows' contents.
void CountCached(int64_t bytes);

}  // namespace penstock::worker
