// SPDX-License-Identifier: Apache-2.0
#include "control/sync/mutex.h"

#include <algorithm>

namespace penstock {

bool TimedMutex::TryLockFor(absl::Duration bound) {
  const auto time = absl::ToChronoNanoseconds(std::min(bound, absl::Hours(24 * 365)));
#ifdef __SANITIZE_THREAD__
  // GCC 12's thread sanitizer does not know pthread_mutex_clocklock(), which try_lock_for() calls.
  return mu_.try_lock_until(std::chrono::system_clock::now() + time);
#else
  return mu_.try_lock_for(time);
#endif
}

}  // namespace penstock
