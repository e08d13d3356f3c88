// SPDX-License-Identifier: Apache-2.0
// Threads: starting, naming and delaying them. All threads of the service start here, so that a
// simulator can replace them.
#pragma once

#include <new>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace penstock {

using Thread = std::thread;
using ThreadId = std::thread::id;  // a default-constructed one is no thread's

// Returns ResourceExhausted that begins with `name`, and contains `why` and a remedy.
absl::Status NoThread(std::string_view name, std::string_view why);

// Starts a thread that runs `run`, or returns NoThread(). `name` is the thread's task, for the
// error.
template <class Run>
absl::StatusOr<Thread> StartThread(std::string_view name, Run&& run) {
  try {
    return Thread(std::forward<Run>(run));
  } catch (const std::system_error& error) {
    return NoThread(name, error.what());
  } catch (const std::bad_alloc& error) {
    return NoThread(name, error.what());
  }
}

// Returns the calling thread.
inline ThreadId CurrentThread() {
  return std::this_thread::get_id();
}

// Returns how many threads the machine can run at once, at least 1.
int Cores();

// Returns after `time`; the second one also when stopped.
void Sleep(absl::Duration time);
void Sleep(absl::Duration time, std::stop_token stop);

}  // namespace penstock
