// SPDX-License-Identifier: Apache-2.0
// The clocks. Every time that the service reads comes from here, so that a simulator can replace
// them. Any thread may call all of them.
#pragma once

#include <chrono>

#include "absl/time/time.h"

namespace penstock {

// Returns the time since the machine started. It also advances while the machine sleeps, and it
// cannot be set. For waits, timeouts and leases; use it for differences, not for display.
absl::Time BootTime();

// Returns the time of day. It can be set at any moment, so use it for display and for interfaces
// that want such a time, not for differences.
absl::Time WallTime();
// Returns the boot time at which WallTime() will be `wall`, unless the clock is set before that.
absl::Time BootTimeAt(absl::Time wall);

// Measures short times, on hot paths too: it counts nanoseconds and costs one clock_gettime() in
// user space. It stands still while the machine sleeps. A clock as <chrono> defines them.
struct SteadyClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SteadyClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};

// Returns the processor time that the calling thread has used.
std::chrono::nanoseconds ThreadCpuTime();

}  // namespace penstock
