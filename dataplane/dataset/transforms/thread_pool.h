// SPDX-License-Identifier: Apache-2.0
// The threads that parallel nodes share: one pool per process, whose work is
// short, never waits for other work, and so cannot block the pool.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock {

class ThreadPool {
 public:
  // REQUIRES: threads ≥ 1.
  explicit ThreadPool(int threads);
  // Drops what has not begun and waits for what has.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // One thread per core; made at first use and never ended.
  static ThreadPool& OfProcess();

  // Runs `work` on one of the threads, soon. Any thread; never waits.
  void Post(std::function<void()> work);

  int threads() const { return static_cast<int>(threads_.size()); }

 private:
  void Run();

  std::mutex mu_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> work_;  // guarded by mu_
  bool stopping_ = false;                   // guarded by mu_
  std::vector<std::thread> threads_;        // constant after construction
};

// Threads that one parallel node may use: `calls` as the dataset asks for it
// (kAutotune: all it may), `threads` of the run (0: one per core).
int Parallelism(int64_t calls, int threads);

}  // namespace penstock
