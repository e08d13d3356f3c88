// SPDX-License-Identifier: Apache-2.0
// Shared by the programs of the two servers: handling of signals, and the line that reports that
// the server is ready.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace penstock::tools {

// Lets malloc return freed blocks of `bytes` bytes and more, and free memory above `bytes` bytes at
// the end of each of its heaps. Otherwise glibc keeps up to 64 MiB in each of 8 heaps per core,
// once a block of 32 MiB has been freed (mallopt(3), "dynamic mmap threshold"). Call it first in a
// server.
void ReturnFreedMemory(int bytes);

// After this call SIGINT and SIGTERM do not end the process: RunUntilStopped() handles them. May be
// called once in a process, after its server has started.
absl::Status CatchStopSignals();

// A server and how its program stops it.
struct Running {
  std::function<void()> join;    // returns when the server was stopped, or has ended by itself
  std::function<void()> stop;    // for SIGINT, or a second signal
  std::function<void()> finish;  // for SIGTERM; may take its time
};
// Returns when the server has stopped; ResourceExhausted if no thread can be started to wait for
// that. REQUIRES: CatchStopSignals().
absl::Status RunUntilStopped(const Running& server);

// Returns ", metrics at http://HOST:PORT/metrics", the end of the ready line; "" for port -1.
std::string MetricsAt(const std::string& host, int metrics_port);

// Writes the port to `port_file` (atomically, by a rename; nothing if the name is empty), then
// prints `line`. Scripts wait for either. PermissionDenied if the file cannot be written.
absl::Status SayReady(const std::string& line, int port, const std::string& port_file);

}  // namespace penstock::tools
