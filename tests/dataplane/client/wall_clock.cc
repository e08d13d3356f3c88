// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/client/wall_clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {
std::atomic<int64_t> step_seconds{0};
}  // namespace

// Replaces the library's function in this program.
extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t clock,
                                                                    timespec* now) noexcept {
  const int failed = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (failed == 0 && clock == CLOCK_REALTIME) now->tv_sec += step_seconds.load();
  return failed;
}

namespace penstock::client {

WallClockStep::WallClockStep(absl::Duration by) {
  step_seconds = absl::ToInt64Seconds(by);
}
WallClockStep::~WallClockStep() {
  step_seconds = 0;
}

}  // namespace penstock::client
