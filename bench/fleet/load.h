// SPDX-License-Identifier: Apache-2.0
// A process with many light workers and clients. The process that starts it writes commands to its
// standard input, one a line, and reads one line for each from its standard output:
//
//   workers FIRST COUNT STEP                         starts the workers FIRST, FIRST + STEP, …
//   clients FIRST COUNT STEP JOB NAME TOKEN LINKS    likewise; TOKEN in hexadecimal digits
//   state TERM      {"workers":…,"clients":…}: those that are welcome in this term or a later one;
//                   "placed": the partitions of these workers; "drained"; "refused": the number of
//                   peers that were refused, and "why"
//   take            "worker_beats", "client_beats": counts of Latencies; "client_bytes": all since
//                   the last take
//   lose N          the worker dies: its stream breaks, and its port refuses connections
//   drain N         the worker asks to drain
//
// An answer without content is {}. An answer {"error":…} means that the command failed.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace penstock::bench {

struct LoadOptions {
  std::string service;                                   // of the dispatcher
  int permits = 4;                                       // of each worker
  absl::Duration between_bookmarks = absl::Seconds(10);  // of a worker
  absl::Duration between_reports = absl::Seconds(1);     // of a client
  double worker_starts_per_s = 500;                      // new ones of this process
  double client_starts_per_s = 50;                       // likewise
};

// Runs until the standard input ends.
absl::Status RunLoad(const LoadOptions& options);

}  // namespace penstock::bench
