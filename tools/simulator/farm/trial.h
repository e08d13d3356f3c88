// SPDX-License-Identifier: Apache-2.0
// One run of a scenario's text under a seed, in a child process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/simulator/check/coverage.h"
#include "tools/simulator/farm/child.h"

namespace penstock::simulator {

struct Trial {
  std::string text;
  uint64_t seed = 0;
  bool twice = false;  // and compares the hashes of both runs
};

struct TrialResult {
  std::string violation;  // the first one; empty: all promises hold
  absl::Duration virtual_time;
  Coverage coverage;
};

// A crash, a hang of more than `limit` of processor time, and a text that is not a scenario are
// violations too.
absl::StatusOr<std::unique_ptr<Child>> StartTrial(const Trial& trial, absl::Duration limit);
TrialResult ResultOf(const ChildEnd& end);
// Starts the trial and waits for its result.
TrialResult RunTrial(const Trial& trial, absl::Duration limit);

// Returns which promise a violation is about, without the time, the process and the details: of
// "at 41.2s: stuck: not all …", "stuck". Two violations with equal names are the same failure.
std::string CheckOf(std::string_view violation);

}  // namespace penstock::simulator
