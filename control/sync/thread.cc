// SPDX-License-Identifier: Apache-2.0
#include "control/sync/thread.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"

namespace penstock {

absl::Status NoThread(std::string_view name, std::string_view why) {
  return absl::ResourceExhaustedError(absl::StrCat(
      std::string(name), ": the process cannot start another thread (", std::string(why),
      "); use fewer parallel calls, or give it more (ulimit -u, ulimit -v, the "
      "container's limit)"));
}

int Cores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void Sleep(absl::Duration time) {
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
