// SPDX-License-Identifier: Apache-2.0
// Mutexes. Mutex is std::mutex with the annotations of clang's thread safety analysis
// (-Wthread-safety). In a simulation, a fiber that cannot get a mutex lets others run. A variable
// with GUARDED_BY may be used, and a function with REQUIRES may be called, only while the named
// lock is held. A lambda is annotated like a function:
//
//   changed_.Wait(lock, [this]() REQUIRES(mu_) { return stopping_; });
//
// GUARDED_BY(&IterationSender::mu_) names a lock in objects of a different class. The analysis then
// does not check which object's lock is held.
#pragma once

#include <mutex>
#include <shared_mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

#define REQUIRES(...) ABSL_EXCLUSIVE_LOCKS_REQUIRED(__VA_ARGS__)
#ifndef GUARDED_BY  // some releases of Abseil define it
#define GUARDED_BY(mutex) ABSL_GUARDED_BY(mutex)
#endif

namespace penstock {

class ABSL_LOCKABLE Mutex {
 public:
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (!mu_.try_lock()) AwaitLock(mu_);
  }
  bool try_lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mu_.try_lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { mu_.unlock(); }
  // Tells the analysis that the lock is held here, for code where the analysis cannot see this.
  // Checks nothing at run time.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class MutexLock;
  // Locks a mutex that another thread or fiber holds.
  static void AwaitLock(std::mutex& mu);

  std::mutex mu_;
};

// Holds the mutex from its constructor to its destructor, except between unlock() and lock().
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : lock_(mu.mu_, std::defer_lock) {
    LockUnchecked();
  }
  MutexLock(Mutex& mu, std::adopt_lock_t adopt) REQUIRES(mu) : lock_(mu.mu_, adopt) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { LockUnchecked(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { lock_.unlock(); }
  // The same as lock() and unlock(), but unseen by the analysis, for a function that got the lock
  // from its caller.
  void LockUnchecked() {
    if (!lock_.try_lock()) AwaitLock();
  }
  void UnlockUnchecked() { lock_.unlock(); }

 private:
  friend class Condition;
  void AwaitLock();

  std::unique_lock<std::mutex> lock_;
};

// A mutex that several readers may hold at once. The analysis does not follow it.
using SharedMutex = std::shared_mutex;

// A mutex that a thread may try to lock for a limited time. The analysis does not follow it.
class TimedMutex {
 public:
  void lock();
  void unlock() { mu_.unlock(); }
  // Tries to lock the mutex for at most `bound`. Returns whether the caller now holds it.
  bool TryLockFor(absl::Duration bound);

 private:
  std::timed_mutex mu_;
};

}  // namespace penstock
