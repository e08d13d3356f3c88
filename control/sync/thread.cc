// SPDX-License-Identifier: Apache-2.0
#include "control/sync/thread.h"

#include <pthread.h>

#include <algorithm>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "control/sync/clock.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/simulation.h"

namespace penstock {

ThreadId CurrentThread() {
  if (Simulation* simulation = PresentSimulation()) return {simulation->CurrentFiber()};
  return {static_cast<uint64_t>(pthread_self())};
}

absl::StatusOr<Thread> Thread::Start(std::string_view name, Run run) {
  Thread thread;
  if (Simulation* simulation = PresentSimulation()) {
    thread.fiber_ = simulation->Start(name, std::move(run));
    return thread;
  }
  try {
    thread.thread_ = std::thread(std::move(run));
  } catch (const std::system_error& error) {
    return NoThread(name, error.what());
  }
  return thread;
}

void Thread::join() {
  if (const uint64_t fiber = std::exchange(fiber_, 0)) return PresentSimulation()->Join(fiber);
  thread_.join();
}

void Thread::detach() {
  if (std::exchange(fiber_, 0) == 0) thread_.detach();
}

ThreadId Thread::get_id() {
  if (fiber_ != 0) return {fiber_};
  return {thread_.joinable() ? static_cast<uint64_t>(thread_.native_handle()) : 0};
}

absl::Status NoThread(std::string_view name, std::string_view why) {
  return absl::ResourceExhaustedError(absl::StrCat(
      std::string(name), ": the process cannot start another thread (", std::string(why),
      "); use fewer parallel calls, or give it more (ulimit -u, ulimit -v, the "
      "container's limit)"));
}

int Cores() {
  if (PresentSimulation() != nullptr) return 2;  // the same on every machine
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void Sleep(absl::Duration time) {
  if (Simulation* simulation = PresentSimulation()) {
    const absl::Time end = BootTime() + time;
    const char condition = 0;
    while (BootTime() < end) simulation->Wait(&condition, end);
    return;
  }
  absl::SleepFor(time);
}

void Sleep(absl::Duration time, std::stop_token stop) {
  Mutex mu;
  Condition stopped;
  const std::stop_callback wakes(stop, [&] {
    { MutexLock lock(mu); }  // the sleeper has checked, or is asleep
    stopped.NotifyAll();
  });
  MutexLock lock(mu);
  stopped.WaitFor(lock, time, [&stop] { return stop.stop_requested(); });
}

}  // namespace penstock
