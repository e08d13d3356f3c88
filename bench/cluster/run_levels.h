// SPDX-License-Identifier: Apache-2.0
// Measures levels alternately and compares each with its limits.
#pragma once

#include <string>
#include <vector>

#include "bench/cluster/level.h"
#include "bench/row.h"

namespace penstock::bench {

// Workload names in the rows of `bench cluster`. There is also kPairWorkload (report.h).
inline constexpr char kHostWorkload[] = "host", kLinkWorkload[] = "link",
                      kManyToOneWorkload[] = "many-to-one";

struct LevelOptions {
  std::string workload;  // one of the names above
  Hosts hosts;           // as shown in the rows
  std::vector<int64_t> sizes;
  int rounds = 5;
  double window_s = 2;
};

// In each of `rounds` every running level has one window. A level and its limit form a pair in each
// round in which both have a window. For each size, a level has one row for each of its limits, or
// one row if it has no limit. A level that was left out or has failed has one row with the reason.
std::vector<Row> RunLevels(const LevelOptions& options, const std::vector<Level>& levels);

}  // namespace penstock::bench
