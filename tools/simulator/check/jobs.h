// SPDX-License-Identifier: Apache-2.0
// Checks all jobs of a simulated run, each by what its mode promises. Each pass is compared with
// its durable records (exactly_once.h), except coordinated reads, whose records have rows instead
// of indices, and caches, which keep no history.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tools/simulator/check/exactly_once.h"
#include "tools/simulator/check/history.h"
#include "tools/simulator/check/shadow.h"
#include "tools/simulator/scenario.h"

namespace penstock::simulator {

struct JobsToCheck {
  const std::vector<JobPlan>& jobs;
  const Histories& histories;  // History::job is a number in `jobs`
  const Shadow& shadow;
  std::function<int64_t(int64_t)> value;  // of element 0, 1, … of each dataset
  bool calm = false;                      // there were no faults
  int64_t given_up = 0;                   // elements, at most, of all jobs
};

// REQUIRES: all jobs have ended: each history has ended or is gone.
Findings CheckJobs(const JobsToCheck& run);

}  // namespace penstock::simulator
