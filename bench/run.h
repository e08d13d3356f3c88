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
  int neighbours = 0;              // > 0: also beside so many busy processes
  std::vector<std::string> peers;  // other systems that take turns with us
  std::string peer_launcher = "bench/peers/start.py";
};

// The cases that the options ask for, in the order in which they run.
// InvalidArgument or NotFound, naming the option, if one makes no sense.
absl::StatusOr<std::vector<Setup>> PlanCases(const Options& options);

// Runs one case to its end: its row; with neighbours, ours among them beside ours alone and beside
// the limit among them; then for each peer the peer's beside the same limit, and ours beside the
// peer. What keeps one from running is the row's status; a peer that does not run has no second
// row.
std::vector<Row> RunCase(const Options& options, const Setup& setup);

}  // namespace penstock::bench
