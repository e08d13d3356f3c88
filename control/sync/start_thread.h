// SPDX-License-Identifier: Apache-2.0
// Starts threads, and returns an error if the process cannot start another one.
#pragma once

#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock {

// Returns ResourceExhausted that begins with `name`, and contains `why` and a remedy.
absl::Status NoThread(std::string_view name, std::string_view why);

// Starts a thread that runs `run`, or returns NoThread(). `name` is the thread's task, for the
// error.
template <class Run>
absl::StatusOr<std::thread> StartThread(std::string_view name, Run&& run) {
  try {
    return std::thread(std::forward<Run>(run));
  } catch (const std::system_error& error) {
    return NoThread(name, error.what());
  } catch (const std::bad_alloc& error) {
    return NoThread(name, error.what());
  }
}

}  // namespace penstock
