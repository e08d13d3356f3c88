// SPDX-License-Identifier: Apache-2.0
// What a worker counts of itself (control/observe/metrics.h), over all its
// iterations.
#pragma once

#include <cstdint>

namespace penstock::worker {

// An element was handed to a link.
void CountSent(int64_t bytes);
// So many were confirmed by the clients they were sent to.
void CountReceived(int64_t elements);

// Of the windows of cross-trainer caches: a trainer was given an element that was
// there already (a hit), or that was prepared for it.
void CountCacheQuery(bool hit);
// A trainer has missed so many elements that fell out of a window.
void CountSkipped(int64_t elements);
// The windows hold so many bytes more, or fewer.
void CountCached(int64_t bytes);

}  // namespace penstock::worker
