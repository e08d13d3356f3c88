// SPDX-License-Identifier: Apache-2.0
// Threads that the process may not get, as errors.
#pragma once

#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock {

// ResourceExhausted that begins with `name`, gives `why` and says what to do.
absl::Status NoThread(std::string_view name, std::string_view why);

// A thread that runs `run`, or NoThread. `name` says what it would have done.
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
