// SPDX-License-Identifier: Apache-2.0
#include "control/sync/boot_time.h"

#include <ctime>

namespace penstock {

absl::Time BootTime() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return absl::TimeFromTimespec(now);
}

}  // namespace penstock
