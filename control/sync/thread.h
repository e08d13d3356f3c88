// SPDX-License-Identifier: Apache-2.0
// Starts, identifies and delays threads. All threads of the service start here, so that a simulator
// can replace them.
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
using ThreadId = std::thread::id;  // a default-constructed id belongs to no thread

// Returns ResourceExhausted with a message that begins with `name` and contains `why` and a remedy.
absl::Status NoThread(std::string_view name, std::string_view why);

// Starts a thread that runs `run`, or returns NoThread(). `name`: the thread's task, for the error.
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

// Returns the number of threads that the machine can run at once, at least 1.
int Cores();

// Return after `time`. The second function also returns when a stop is requested.
void Sleep(absl::Duration time);
void Sleep(absl::Duration time, std::stop_token stop);

}  // namespace penstock
