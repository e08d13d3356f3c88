// SPDX-License-Identifier: Apache-2.0
// The clock that waits, time-outs and leases go by.
#pragma once

#include "absl/time/time.h"

namespace penstock {

// Time since the machine started. It also passes while the machine sleeps, and nobody sets it; for
// differences, not for people. Any thread.
absl::Time BootTime();

}  // namespace penstock
