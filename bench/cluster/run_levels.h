// SPDX-License-Identifier: Apache-2.0
// Measures levels in turn and puts each beside those that limit it.
#pragma once

#include <string>
#include <vector>

#include "bench/cluster/level.h"
#include "bench/row.h"

namespace penstock::bench {

// What the rows of the cluster's bench are called; beside them kPairWorkload (report.h).
inline constexpr char kHostWorkload[] = "host", kLinkWorkload[] = "link",
                      kManyToOneWorkload[] = "many-to-one";

struct LevelOptions {
  std::string workload;  // one of these
  Hosts hosts;           // as the rows are to say them
  std::vector<int64_t> sizes;
  int rounds = 5;
  double window_s = 2;
};

// In each of `rounds` every level that runs has a window; a level and a limit are
// a pair where both had one. Of each size a row for a level and each of its limits,
// or one for a level that stands alone; one, with the reason, for a level that is
// left out or failed.
std::vector<Row> RunLevels(const LevelOptions& options, const std::vector<Level>& levels);

}  // namespace penstock::bench
