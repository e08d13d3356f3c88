// SPDX-License-Identifier: Apache-2.0
// Calls that run in parallel and are collected in the order in which they were added.
#pragma once

#include <deque>
#include <memory>

#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/transforms/map/thread_pool.h"

namespace penstock {

// At most `parallelism` calls of one node run at a time, on the threads of a pool and on the thread
// that waits for them. One thread calls Add(), SetParallelism() and Await().
class OrderedCalls {
 public:
  // A call, run once. It must live until it is done or the OrderedCalls is destroyed.
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
  // Drops calls that have not begun, and waits for the others.
  ~OrderedCalls();

  // Runs `call` as soon as the parallelism allows. Never waits.
  void Add(Call& call);
  // Sets the number of calls at a time. Running calls continue.
  void SetParallelism(int parallelism);
  // Waits until `call` is done. Until `call` begins, runs waiting calls on the caller's thread if
  // the parallelism allows it. Runs no call that was added after `call`, since such a call might
  // outlast `call`. Returns true if this thread had to wait while the parallelism allowed more
  // calls and there were none to run.
  bool Await(Call& call);

 private:
  // Outlives the OrderedCalls while posted work refers to it.
  struct Shared {
    explicit Shared(int most) : parallelism(most) {}
    Mutex mu;
    Condition done;
    int parallelism GUARDED_BY(mu);
    std::deque<Call*> waiting GUARDED_BY(mu);
    int running GUARDED_BY(mu) = 0;  // calls; at most `parallelism`
    int runners GUARDED_BY(mu) = 0;  // RunWaiting() on the pool, or posted to the pool
  };
  // Runs waiting calls until there are none, or until the parallelism allows no more.
  static void RunWaiting(Shared& shared);
  // `lock` holds shared.mu, except while the call runs. Thread-safety analysis cannot follow that.
  static void RunOne(Shared& shared, MutexLock& lock)
      REQUIRES(shared.mu) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Makes sure that a thread runs the waiting calls.
  void KeepGoing();

  ThreadPool& pool_;
  int parallelism_;  // copy of the value in `shared_`, read without the lock
  std::shared_ptr<Shared> shared_;
};

}  // namespace penstock
