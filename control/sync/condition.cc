// SPDX-License-Identifier: Apache-2.0
#include "control/sync/condition.h"

#include <algorithm>

namespace penstock {
namespace {

// A longer bound counts as infinite, because the time at which it ends could not be counted in
// nanoseconds.
constexpr absl::Duration kMaxBound = absl::Hours(24 * 365 * 100);

}  // namespace

void Condition::WaitFor(MutexLock& lock, absl::Duration bound) {
  if (bound > kMaxBound) return Wait(lock);
  changed_.wait_for(lock.lock_, absl::ToChronoNanoseconds(std::max(bound, absl::ZeroDuration())));
}

}  // namespace penstock
