// SPDX-License-Identifier: Apache-2.0
// For tests of the simulator's engine: a simulation with one process, and a number that its fibers
// share.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "gtest/gtest.h"
#include "tools/simulator/engine/process.h"
#include "tools/simulator/engine/scheduler.h"
#include "tools/simulator/engine/trace.h"

namespace penstock::simulator {

inline absl::Time AtSecond(double seconds) {
  return kBeginOfWorld + absl::Seconds(seconds);
}

struct OneProcess {
  explicit OneProcess(const SchedulerOptions& options = {})
      : scheduler(options, trace), process(scheduler.NewProcess("host", "process")) {}

  uint64_t Start(std::string_view name, Scheduler::Event run) {
    return scheduler.StartIn(process, name, std::move(run));
  }
  // Until nothing is left to do.
  void Run() { EXPECT_TRUE(scheduler.Run(absl::InfiniteFuture()).ok()); }

  Trace trace;
  Scheduler scheduler;
  std::shared_ptr<Process> process;
};

// A condition, the lock that it waits with, and a value that fibers change.
struct SharedNumber {
  void Add(int by) {
    MutexLock lock(mu);
    value += by;
    changed.NotifyAll();
  }
  void AwaitAtLeast(int bound) {
    MutexLock lock(mu);
    changed.Wait(lock, [&]() REQUIRES(mu) { return value >= bound; });
  }
  Mutex mu;
  Condition changed;
  int value GUARDED_BY(mu) = 0;
};

}  // namespace penstock::simulator
