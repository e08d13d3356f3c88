// SPDX-License-Identifier: Apache-2.0
#include "control/sync/mutex.h"

#include <algorithm>

#include "control/sync/clock.h"
#include "control/sync/simulation.h"

namespace penstock {

void Mutex::AwaitLock(std::mutex& mu) {
  if (Simulation* simulation = PresentSimulation()) {
    simulation->AwaitLock([&] { return mu.try_lock(); }, absl::InfiniteFuture());
  } else {
    mu.lock();
  }
}

void MutexLock::AwaitLock() {
  std::mutex& mu = *lock_.mutex();
  Mutex::AwaitLock(mu);
  lock_ = std::unique_lock(mu, std::adopt_lock);
}

void TimedMutex::lock() {
  if (Simulation* simulation = PresentSimulation()) {
    simulation->AwaitLock([this] { return mu_.try_lock(); }, absl::InfiniteFuture());
  } else {
    mu_.lock();
  }
}

bool TimedMutex::TryLockFor(absl::Duration bound) {
  if (Simulation* simulation = PresentSimulation()) {
    return simulation->AwaitLock([this] { return mu_.try_lock(); }, BootTime() + bound);
  }
  const auto time = absl::ToChronoNanoseconds(std::min(bound, absl::Hours(24 * 365)));
#ifdef __SANITIZE_THREAD__
  // GCC 12's thread sanitizer does not know pthread_mutex_clocklock(), which try_lock_for() calls.
  return mu_.try_lock_until(std::chrono::system_clock::now() + time);
#else
  return mu_.try_lock_for(time);
#endif
}

}  // namespace penstock
