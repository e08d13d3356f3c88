// SPDX-License-Identifier: Apache-2.0
// The process's limit on shared memory. Any thread.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace penstock {

// Limits the total size of the segments that this process created, or opened with Writers::kAll.
// The default is half of UsableMemory(), divided by the number of processes that were started
// together on this machine (control/env/launchers.h). Tests set smaller limits.
void SetMaxSharedBytes(int64_t bytes);

// Counts `bytes` in the limit; ResourceExhausted if they do not fit.
absl::Status ReserveShared(int64_t bytes);
void ReleaseShared(int64_t bytes);
int64_t ReservedSharedBytes();

}  // namespace penstock
