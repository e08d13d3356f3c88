// SPDX-License-Identifier: Apache-2.0
// What a worker counts of itself (control/observe/metrics.h), over all its
// iterations.
#pragma once

#include <cstdint>

namespace penstock::worker {

// An element was handed to a link.
void CountSent(int64_t bytes);
// So many were confirmed by the clients they were sent to.
void CountLanded(int64_t elements);

}  // namespace penstock::worker
