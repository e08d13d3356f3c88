// SPDX-License-Identifier: Apache-2.0
// One simulated run: a scenario under a seed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/simulator/check/coverage.h"
#include "tools/simulator/engine/trace.h"
#include "tools/simulator/scenario.h"

namespace penstock::simulator {

struct Outcome {
  uint64_t hash = 0;            // of the trace: equal for two runs of one seed
  absl::Duration virtual_time;  // until the last trainer had reached the end
  int64_t elements = 0;         // that are in exactly one history
  int64_t given_up = 0;         // see Findings
  int64_t switches = 0;         // between fibers
  // The dispatcher ended a job because many workers, killed by faults, had one of its partitions.
  // What trainers got was not checked.
  bool inconclusive = false;
  Coverage coverage;                    // the states in which the run was
  std::vector<std::string> violations;  // promises that do not hold, the first one first
};

// What follows a run. It does not change the run.
struct Watch {
  Trace* trace = nullptr;  // gets what happens
  // Called with each record that is durable in the dispatcher's journal.
  std::function<void(const std::string& record)> on_record = nullptr;
  std::function<void(absl::Duration now)> on_minute = nullptr;  // after each virtual minute
};

// Builds the cluster, runs the scenario, checks what trainers got, and ends the cluster. Needs a
// process with one thread, without variables PENSTOCK_*.
//
// An error means that the run could not be ended, so that its fibers are still there: the process
// must then not run another one.
absl::StatusOr<Outcome> RunScenario(const Scenario& scenario, uint64_t seed,
                                    const Watch& watch = {});

}  // namespace penstock::simulator
