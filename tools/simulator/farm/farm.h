// SPDX-License-Identifier: Apache-2.0
// Runs scenarios under new seeds for some time, in several processes: drawn ones (generator.h) and
// given ones in turn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace penstock::simulator {

struct FarmOptions {
  std::vector<std::string> files;           // scenarios that run besides drawn ones
  absl::Duration time = absl::Minutes(10);  // in which runs begin; shrinking may take longer
  int jobs = 1;                             // processes at a time
  // The first run has this seed, and each further run the next one. A drawn scenario is drawn from
  // the seed under which it runs.
  uint64_t first_seed = 1;
  absl::Duration run_limit = absl::Minutes(1);  // of processor time; more counts as a hang
  std::string out = "simulator-failures";       // folder for scenarios that fail; is made
};

// Prints a line each minute and for each failure, and at the end the coverage. Writes the first
// scenarios that fail by a check into files, and the first of all made smaller into another.
// Returns how many runs failed. NotFound or InvalidArgument for a file that is not a scenario. The
// process must have no other thread. The scenarios' own seeds are ignored.
absl::StatusOr<int64_t> RunFarm(const FarmOptions& options);

}  // namespace penstock::simulator
