// SPDX-License-Identifier: Apache-2.0
// The threads that parallel nodes share. Usually there is one pool per process; a worker may give
// each job a pool of its own. The work of a pool is short and never waits for other work, so no
// work can block the pool.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"

namespace penstock {

struct RunContext;  // dataplane/dataset/engine/node_iterator.h

class ThreadPool {
 public:
  // REQUIRES: threads ≥ 1.
  explicit ThreadPool(int threads);
  // Drops work that has not begun, and waits for the rest.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // This pool has one thread per core, and more where calls wait for something other than a core
  // (Grow). It is created at first use and never destroyed.
  static ThreadPool& OfProcess();
  // Returns the pool for the calls of a run: its own, or that of the process.
  static ThreadPool& Of(const RunContext& run);

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
