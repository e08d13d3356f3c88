// SPDX-License-Identifier: Apache-2.0
// `penstock bench fleet`: the cost of a dispatcher by the size of its fleet.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/fleet/fleet_service.h"

namespace penstock::bench {

// A figure of one size. Lower is better.
struct FleetFigure {
  std::string name;  // the same for each size
  std::string unit;
  double value = 0;
  double bar = -1;  // the most that is allowed at 10,000 workers; below 0: none
};

struct FleetSize {
  int workers = 0;
  int clients = 0;
  std::vector<FleetFigure> figures;  // those that were measured
  absl::Status status;               // not OK: the reason why some are missing
};

// Runs a fleet of that size through all phases. A phase that does not come to rest ends the size.
FleetSize MeasureFleet(const FleetOptions& options, int workers);

// Returns the figures as a table for people.
std::string TableOf(const FleetSize& size);
// Returns one line of JSON, with a line break.
std::string RecordOf(const FleetSize& size);
// Returns a table with the exponent of each figure by workers. At most 1.1 is linear or better.
std::string GrowthOf(const std::vector<FleetSize>& sizes);

}  // namespace penstock::bench
