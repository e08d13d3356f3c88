// SPDX-License-Identifier: Apache-2.0
// Runs a function for each replica in parallel.
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace penstock::replica {

// Calls fn(i) for i in [0, count), each on a thread of its own, except fn(0), which runs on the
// caller's thread. When all calls have returned, returns the error of the lowest i whose call
// failed. Returns ResourceExhausted, without calling `fn`, if the process cannot start the threads.
absl::Status ParallelFor(int count, const std::function<absl::Status(int)>& fn);

}  // namespace penstock::replica
