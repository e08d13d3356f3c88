// SPDX-License-Identifier: Apache-2.0
#include "control/sync/condition.h"

#include <algorithm>

#include "control/sync/simulation.h"

namespace penstock {
namespace {

// A longer bound counts as infinite, because the time at which it ends could not be counted in
// nanoseconds.
constexpr absl::Duration kMaxBound = absl::Hours(24 * 365 * 100);

}  // namespace

void Condition::NotifyOne() {
  if (Simulation* simulation = PresentSimulation()) return simulation->Notify(this, /*all=*/false);
  changed_.notify_one();
}

void Condition::NotifyAll() {
  if (Simulation* simulation = PresentSimulation()) return simulation->Notify(this, /*all=*/true);
  changed_.notify_all();
}

void Condition::Wait(MutexLock& lock) {
  if (PresentSimulation() != nullptr) return WaitInSimulation(lock, absl::InfiniteFuture());
  changed_.wait(lock.lock_);
}

// No other fiber runs between unlocking and waiting, so no notification is missed.
void Condition::WaitInSimulation(MutexLock& lock, absl::Time deadline) {
  lock.UnlockUnchecked();
  PresentSimulation()->Wait(this, deadline);
  lock.LockUnchecked();
}

void Condition::WaitFor(MutexLock& lock, absl::Duration bound) {
  if (PresentSimulation() != nullptr) return WaitInSimulation(lock, BootTime() + bound);
  if (bound > kMaxBound) return Wait(lock);
  changed_.wait_for(lock.lock_, absl::ToChronoNanoseconds(std::max(bound, absl::ZeroDuration())));
}

}  // namespace penstock
