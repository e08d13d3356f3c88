// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM as requests to end in good order, so that no process or file is left over.
#pragma once

#include "absl/status/status.h"

namespace penstock::bench {

// From now on the first of each signal is a request, and the second ends this process at once. A
// signal that is ignored stays ignored.
void WatchForInterrupts();

// Returns whether a request came. Thread-safe.
bool Interrupted();
// Returns a descriptor that is readable after a request; -1 without WatchForInterrupts(). poll()
// ignores -1.
int InterruptFd();
// Returns Cancelled after a request.
absl::Status CheckInterrupted();

}  // namespace penstock::bench
