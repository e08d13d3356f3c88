// SPDX-License-Identifier: Apache-2.0
// Calls that run side by side and are collected in the order they were added.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>

#include "control/sync/mutex.h"
#include "dataplane/dataset/transforms/thread_pool.h"

namespace penstock {

// At most `parallelism` calls of one node at a time, on the threads of a pool
// and on the thread that waits for them. Add(),
// SetParallelism() and Await() are for one thread.
class OrderedCalls {
 public:
  // Something to be run once. Must live until it is done or the OrderedCalls is gone.
  class Call {
   public:
    virtual ~Call() = default;
    virtual void Run() = 0;

   private:
    friend class OrderedCalls;
    // Guarded by Shared::mu from Add() to the end of Await().
    bool begun_ = true;
    bool done_ = true;
  };

  OrderedCalls(ThreadPool& pool, int parallelism);
  // Drops the calls that have not begun and waits for those that have.
  ~OrderedCalls();

  // Starts `call` as soon as there is room. Never waits.
  void Add(Call& call);
  // So many at a time from now on; those that run are not ended.
  void SetParallelism(int parallelism);
  // Returns when `call` is done: true if this thread waited for it while others that
  // the parallelism allows had no call to run. Until it has begun this runs calls on the caller's
  // thread, if that keeps within the parallelism; never one added after it, which
  // might take long while `call` is done.
  bool Await(Call& call);

 private:
  // Outlives the OrderedCalls while posted work still refers to it.
  struct Shared {
    explicit Shared(int most) : parallelism(most) {}
    Mutex mu;
    std::condition_variable done;
    int parallelism GUARDED_BY(mu);
    std::deque<Call*> waiting GUARDED_BY(mu);
    int running GUARDED_BY(mu) = 0;  // calls; never above `parallelism`
    int runners GUARDED_BY(mu) = 0;  // of these, on the pool's threads or posted there
  };
  // Runs waiting calls until there are none.
  static void RunWaiting(Shared& shared);
  // `lock` holds shared.mu, but not while the call runs: the analysis does not see into it.
  static void RunOne(Shared& shared, MutexLock& lock)
      REQUIRES(shared.mu) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Sees to it that somebody runs the waiting calls.
  void KeepGoing();

  ThreadPool& pool_;
  int parallelism_;  // as in `shared_`, without its lock
  std::shared_ptr<Shared> shared_;
};

}  // namespace penstock
