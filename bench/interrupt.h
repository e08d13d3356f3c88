// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM as requests to end in good order, so that no process or file is left over.
#pragma once

#include "absl/status/status.h"

namespace penstock::bench {

// After this call the first SIGINT or SIGTERM is a request, and the second one of the same kind
// ends this process at once. A signal that is ignored stays ignored.
void WatchForInterrupts();

// Returns whether a request came. Thread-safe.
bool Interrupted();
// Returns a descriptor that is readable after a request; -1 without WatchForInterrupts(). poll()
// ignores -1.
int InterruptFd();
// Returns Cancelled after a request.
absl::Status CheckInterrupted();

}  // namespace penstock::bench
