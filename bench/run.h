// SPDX-License-Identifier: Apache-2.0
// Runs cases.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/row.h"
#include "bench/workload.h"

namespace penstock::bench {

struct Options {
  std::vector<std::string> workloads;  // empty: all
  std::vector<std::string> protocols;  // empty: all that this program has
  std::vector<int64_t> sizes;          // bytes of an element; empty: the workload's own
  int pairs = 7;
  double window_s = 2;
  int64_t source_bytes = kColdBytes;
  Hosts hosts;
  int neighbours = 0;              // > 0: also next to this many busy processes
  std::vector<std::string> peers;  // other systems that alternate with ours
  std::string peer_launcher = "bench/peers/start.py";
};

// Returns the requested cases in the order in which they run. InvalidArgument or NotFound, naming
// the option, if an option is invalid.
absl::StatusOr<std::vector<Setup>> PlanCases(const Options& options);

// Runs one case to its end. Returns its row. With neighbours, two rows follow: ours among
// neighbours, compared with ours alone and with the limit among neighbours. Then each peer has two
// rows: the peer compared with the limit, and ours compared with the peer. If a side cannot run,
// the reason is the row's status. A peer that does not run has only the first row.
std::vector<Row> RunCase(const Options& options, const Setup& setup);

}  // namespace penstock::bench
