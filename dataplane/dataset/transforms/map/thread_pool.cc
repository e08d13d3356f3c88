// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/map/thread_pool.h"

#include <algorithm>
#include <utility>

#include "control/sync/mutex.h"
#include "control/sync/simulation.h"
#include "control/sync/thread.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "penstock/check.h"
#include "penstock/dataset.h"

namespace penstock {

ThreadPool::ThreadPool(int threads) {
  PENSTOCK_CHECK(threads >= 1);
  Grow(threads);
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    work_.clear();
  }
  wake_.NotifyAll();
  for (Thread& thread : threads_) thread.join();
}

int ThreadPool::threads() const {
  MutexLock lock(mu_);
  return static_cast<int>(threads_.size());
}

// A simulation's threads end with it, but the process's pool does not. So the pool stays empty, and
// the threads that wait for calls make them.
void ThreadPool::Grow(int threads) {
  if (PresentSimulation() != nullptr) return;
  MutexLock lock(mu_);
  threads_.reserve(static_cast<size_t>(threads));
  while (static_cast<int>(threads_.size()) < threads) {
    absl::StatusOr<Thread> thread = StartThread("parallel calls", [this] { Run(); });
    if (!thread.ok()) return;  // OrderedCalls continue with fewer threads, or without any
    threads_.push_back(*std::move(thread));
  }
}

ThreadPool& ThreadPool::OfProcess() {
  static ThreadPool& pool = *new ThreadPool(Cores());  // outlives all statics that use it
  return pool;
}

ThreadPool& ThreadPool::Of(const RunContext& run) {
  return run.calls == nullptr ? OfProcess() : *run.calls;
}

void ThreadPool::Post(std::function<void()> work) {
  {
    MutexLock lock(mu_);
    work_.push_back(std::move(work));
  }
  wake_.NotifyOne();
}

void ThreadPool::Run() {
  MutexLock lock(mu_);
  while (true) {
    wake_.Wait(lock, [this]() REQUIRES(mu_) { return stopping_ || !work_.empty(); });
    if (stopping_) return;
    std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    work = nullptr;  // destroys its captures without the lock
    lock.lock();
  }
}

}  // namespace penstock
