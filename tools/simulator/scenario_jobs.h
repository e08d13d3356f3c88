// SPDX-License-Identifier: Apache-2.0
// The statement `job` of a scenario.
#pragma once

#include "absl/status/status.h"
#include "tools/simulator/scenario.h"
#include "tools/simulator/scenario_words.h"

namespace penstock::simulator {

// Parses the rest of a statement `job`. A new job takes the values that `trainers` and `dataset`
// have above it. With `copies`, there are several such jobs, with numbers in their names. A further
// statement of the same name adds trainers, and may only say how many there are and how fast they
// read.
absl::Status AddJob(Words& words, Scenario& scenario);

// InvalidArgument if a job has options that exclude each other.
absl::Status ValidateJobs(const Scenario& scenario);

}  // namespace penstock::simulator
