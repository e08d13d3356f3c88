// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/map/ordered_calls.h"

#include <utility>

#include "control/sync/mutex.h"

namespace penstock {

OrderedCalls::OrderedCalls(ThreadPool& pool, int parallelism)
    : pool_(pool), parallelism_(parallelism), shared_(std::make_shared<Shared>(parallelism)) {}

OrderedCalls::~OrderedCalls() {
  MutexLock lock(shared_->mu);
  shared_->waiting.clear();
  shared_->done.Wait(lock, [this]() REQUIRES(shared_->mu) { return shared_->running == 0; });
}

void OrderedCalls::Add(Call& call) {
  {
    MutexLock lock(shared_->mu);
    call.begun_ = call.done_ = false;
    shared_->waiting.push_back(&call);
  }
  KeepGoing();
}

void OrderedCalls::SetParallelism(int parallelism) {
  if (parallelism == std::exchange(parallelism_, parallelism)) return;
  MutexLock lock(shared_->mu);
  shared_->parallelism = parallelism;
}

void OrderedCalls::KeepGoing() {
  {
    MutexLock lock(shared_->mu);
    if (shared_->waiting.empty() || shared_->runners >= shared_->parallelism) return;
    ++shared_->runners;
  }
  pool_.Post([shared = shared_] { RunWaiting(*shared); });
}

bool OrderedCalls::Await(Call& call) {
  bool helped = false, others_idle = false;
  {
    MutexLock lock(shared_->mu);
    while (!call.done_) {
      if (!call.begun_ && shared_->running < shared_->parallelism) {
        RunOne(*shared_, lock);
        helped = true;
      } else {
        others_idle |= shared_->waiting.empty() && shared_->running < shared_->parallelism;
        shared_->done.Wait(lock);
      }
    }
  }
  if (helped) KeepGoing();  // a runner may have left because this thread ran a call
  return others_idle;
}

void OrderedCalls::RunWaiting(Shared& shared) {
  MutexLock lock(shared.mu);
  while (!shared.waiting.empty() && shared.running < shared.parallelism) RunOne(shared, lock);
  --shared.runners;
}

void OrderedCalls::RunOne(Shared& shared, MutexLock& lock) {
  Call& call = *shared.waiting.front();
  shared.waiting.pop_front();
  call.begun_ = true;
  ++shared.running;
  lock.unlock();
  call.Run();
  lock.lock();
  call.done_ = true;
  --shared.running;
  // Notify under the lock: the thread that destroys the OrderedCalls must not continue before this
  // thread has notified it.
  shared.done.NotifyAll();
}

}  // namespace penstock
