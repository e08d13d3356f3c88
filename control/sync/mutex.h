// SPDX-License-Identifier: Apache-2.0
// std::mutex as clang's thread safety analysis follows it (-Wthread-safety): what
// GUARDED_BY names is only touched with that lock held, and what REQUIRES it only
// called so. A lambda says it like a function:
//
//   changed_.wait(lock, [this]() REQUIRES(mu_) { return stopping_; });
//
// What the lock of an object of another class guards: GUARDED_BY(&IterationSender::mu_). Which
// object's lock is held is not checked.
#pragma once

#include <mutex>

#include "absl/base/thread_annotations.h"

#define REQUIRES(...) ABSL_EXCLUSIVE_LOCKS_REQUIRED(__VA_ARGS__)
#ifndef GUARDED_BY  // some releases of Abseil have it by this name
#define GUARDED_BY(mutex) ABSL_GUARDED_BY(mutex)
#endif

namespace penstock {

class ABSL_LOCKABLE Mutex {
 public:
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mu_.lock(); }
  bool try_lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mu_.try_lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { mu_.unlock(); }
  // Tells the analysis what it cannot see: the lock is held here. Checks nothing.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class MutexLock;
  std::mutex mu_;
};

// Holds the mutex from its constructor to its destructor, but between unlock() and lock().
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : lock_(mu.mu_) {}
  MutexLock(Mutex& mu, std::adopt_lock_t adopt) REQUIRES(mu) : lock_(mu.mu_, adopt) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { lock_.lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { lock_.unlock(); }
  // For what waits: std::condition_variable, PollingCondition.
  operator std::unique_lock<std::mutex>&() { return lock_; }  // NOLINT(google-explicit-constructor)

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace penstock
