// SPDX-License-Identifier: Apache-2.0
// The threads that parallel nodes share: one pool per process, whose work is
// short, never waits for other work, and so cannot block the pool.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "control/sync/mutex.h"

namespace penstock {

class ThreadPool {
 public:
  // REQUIRES: threads ≥ 1.
  explicit ThreadPool(int threads);
  // Drops what has not begun and waits for what has.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // One thread per core, more where calls wait for something else than a core
  // (Grow); made at first use and never ended.
  static ThreadPool& OfProcess();

  // Makes threads until there are `threads` of them, or the process gets no more. Any thread.
  void Grow(int threads);

  // Runs `work` on one of the threads, soon. Any thread; never waits.
  void Post(std::function<void()> work);

  int threads() const;

 private:
  void Run();

  mutable Mutex mu_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> work_ GUARDED_BY(mu_);
  bool stopping_ GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_ GUARDED_BY(mu_);
};

// Threads that one parallel node begins with: `calls` as the dataset asks for it
// (kAutotune: all it may), `threads` of the run (0: one per core).
int Parallelism(int64_t calls, int threads);
// The most that a node may come to use whose calls wait for something else than a core.
inline constexpr int kMostTunedThreads = 64;

}  // namespace penstock
