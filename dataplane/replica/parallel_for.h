// SPDX-License-Identifier: Apache-2.0
// Runs a function for each replica in parallel.
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace penstock::replica {

// Calls fn(i) for i in [0, count), each on its own thread, fn(0) on the caller's. Returns when all
// calls have returned, with the error of the lowest i that has one. ResourceExhausted, without any
// call, if the process cannot start the threads.
absl::Status ParallelFor(int count, const std::function<absl::Status(int)>& fn);

}  // namespace penstock::replica
