// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM as a request to end in good order, so that no process and no
// file stays behind.
#pragma once

#include "absl/status/status.h"

namespace penstock::bench {

// From now on the first of each asks, and a second one ends this process at once.
// One that is ignored stays so.
void WatchForInterrupts();

// Whether one came. Any thread.
bool Interrupted();
// Readable from then on; -1 if nobody watches. poll() leaves that one out.
int InterruptFd();
// Cancelled if one came.
absl::Status CheckInterrupted();

}  // namespace penstock::bench
