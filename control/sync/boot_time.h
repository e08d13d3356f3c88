// SPDX-License-Identifier: Apache-2.0
// The clock for waits, timeouts and leases.
#pragma once

#include "absl/time/time.h"

namespace penstock {

// Returns the time since the machine started. It also advances while the machine sleeps, and it
// cannot be set. Use it for differences, not for display. Any thread.
absl::Time BootTime();

}  // namespace penstock
