// SPDX-License-Identifier: Apache-2.0
// The threads that parallel nodes share: one pool per process. The work of the pool is short and
// never waits for other work, so no work can block the pool.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"

namespace penstock {

class ThreadPool {
 public:
  // REQUIRES: threads ≥ 1.
  explicit ThreadPool(int threads);
  // Drops work that has not begun, and waits for the rest.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The pool has one thread per core, and more where calls wait for something other than a core
  // (Grow). It is created at first use and never destroyed.
  static ThreadPool& OfProcess();

  // Starts threads until there are `threads`, or until the system refuses to start another. Any
  // thread.
  void Grow(int threads);

  // Runs `work` soon on one of the threads. Any thread; never waits.
  void Post(std::function<void()> work);

  int threads() const;

 private:
  void Run();

  mutable Mutex mu_;
  Condition wake_;
  std::deque<std::function<void()>> work_ GUARDED_BY(mu_);
  bool stopping_ GUARDED_BY(mu_) = false;
  std::vector<Thread> threads_ GUARDED_BY(mu_);
};

}  // namespace penstock
