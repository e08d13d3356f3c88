// SPDX-License-Identifier: Apache-2.0
// The clocks. The service reads the time only through these functions, so that a simulation
// can replace them. Any thread may call any of them.
#pragma once

#include <chrono>

#include "absl/time/time.h"

namespace penstock {

// Returns the time since the machine started, for waits, timeouts and leases. It also advances
// while the machine sleeps, and cannot be set. Use it for differences, not for display.
absl::Time BootTime();

// Returns the time of day. It may be set at any moment, so use it for display and for interfaces
// that need the time of day, not for differences.
absl::Time WallTime();
// Returns the boot time at which WallTime() will be `wall`, unless the clock is set before that.
absl::Time BootTimeAt(absl::Time wall);

// Measures short times, even on hot paths: it counts nanoseconds and costs one clock_gettime() in
// user space. It does not advance while the machine sleeps. It is a clock in the sense of <chrono>.
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
