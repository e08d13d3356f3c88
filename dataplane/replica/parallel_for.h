// SPDX-License-Identifier: Apache-2.0
// The same for each replica, at once.
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace penstock::replica {

// Calls fn(i) for i in [0, count), each on a thread of its own, 0 on the caller's;
// returns when all have returned, with the error of the lowest i that has one. ResourceExhausted,
// and none was called, where the process gets no thread.
absl::Status ParallelFor(int count, const std::function<absl::Status(int)>& fn);

}  // namespace penstock::replica
