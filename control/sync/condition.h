// SPDX-License-Identifier: Apache-2.0
// A condition variable for Mutex. All waits of one thread for another go through this class, so
// that a simulation can replace them. A predicate is called with the lock held, and is annotated
// like a function:
//
//   changed_.Wait(lock, [this]() REQUIRES(mu_) { return stopping_; });
#pragma once

#include <condition_variable>

#include "absl/time/time.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"

namespace penstock {

// All waits release the lock, and hold it again when they return. Bounds and deadlines may be
// infinite. A bound that is not positive ends the wait at once.
class Condition {
 public:
  Condition() = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  void NotifyOne();
  void NotifyAll();

  // These wait for a notification, but may return before it.
  void Wait(MutexLock& lock);
  void WaitFor(MutexLock& lock, absl::Duration bound);

  // These wait until `is_over` returns true. The ones with a bound or a deadline (a BootTime())
  // return false if `is_over` is still false at that time.
  template <class Predicate>
  void Wait(MutexLock& lock, const Predicate& is_over) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    while (!is_over()) Wait(lock);
  }
  template <class Predicate>
  bool WaitFor(MutexLock& lock, absl::Duration bound, const Predicate& is_over) {
    return WaitUntil(lock, BootTime() + bound, is_over);
  }
  template <class Predicate>
  bool WaitUntil(MutexLock& lock, absl::Time deadline,
                 const Predicate& is_over) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    while (!is_over()) {
      const absl::Duration left = deadline - BootTime();
      if (left <= absl::ZeroDuration()) return false;
      WaitFor(lock, left);
    }
    return true;
  }

 private:
  void WaitInSimulation(MutexLock& lock, absl::Time deadline);

  std::condition_variable changed_;
};

}  // namespace penstock
