// SPDX-License-Identifier: Apache-2.0
// What the two servers' programs share: signals, and the word that they are ready.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace penstock::tools {

// SIGINT and SIGTERM wait for RunUntilStopped() from now on, and no longer end
// the process. Once in a process, when its server has started.
absl::Status CatchStopSignals();

// A server in the hands of its program.
struct Running {
  std::function<void()> join;    // until it is stopped, or ended by itself
  std::function<void()> stop;    // SIGINT, or a second signal
  std::function<void()> finish;  // SIGTERM; may take its time
};
// Returns when the server has stopped; ResourceExhausted where the process gets no thread to wait
// for that. REQUIRES: CatchStopSignals().
absl::Status RunUntilStopped(const Running& server);

// ", metrics at http://HOST:PORT/metrics", for the end of that word; nothing for
// port -1.
std::string MetricsAt(const std::string& host, int metrics_port);

// Writes the port to `port_file` (whole, by a rename; not if it is empty), then
// prints `line`, for scripts that wait for either.
absl::Status SayReady(const std::string& line, int port, const std::string& port_file);

}  // namespace penstock::tools
