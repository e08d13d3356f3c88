// SPDX-License-Identifier: Apache-2.0
// The limits: the rates of the machine without Penstock. A limit is the other side of each pair.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/hosts.h"
#include "bench/side.h"
#include "bench/source.h"

namespace penstock::bench {

// The data that both sides of a pair move.
struct Load {
  int64_t element_bytes = 0;  // ≥ 8
  int64_t source_bytes = kColdBytes;
  Touch touch = Touch::kEveryByte;
  Hosts hosts = {};          // two hosts: a socket from there to here
  std::string scratch = {};  // for the log of a process there
};

// "fill1": one thread copies from the source into 4 slots, and a second one reads them.
absl::StatusOr<std::unique_ptr<Side>> MakeFillLimit(const Load& load);

// "socket": a process fills 4 slots from the source and writes them to a blocking socket, over
// loopback or from the other host. The socket is read directly into 4 slots. `congestion` control
// should equal that of the measured side; "": the machine's default.
absl::StatusOr<std::unique_ptr<Side>> MakeSocketLimit(const Load& load,
                                                      const std::string& congestion);

// The limit for `protocol`: memory, or sockets with the same congestion control.
absl::StatusOr<std::unique_ptr<Side>> MakeTransferLimit(const Load& load,
                                                        const std::string& protocol);

// Runs the writing process: connects to `host`, then fills and writes until the reader closes the
// connection. Unavailable if it cannot connect.
absl::Status ProduceForSocket(const std::string& host, int port, const Load& load,
                              const std::string& congestion);

// Slows `side` down to the rate of trainers that take `elements_per_s`.
std::unique_ptr<Side> MakePacedLimit(std::unique_ptr<Side> side, double elements_per_s);

// A required rate in place of a machine's limit. It has no processes and takes no time.
std::unique_ptr<Side> MakeBar(std::string name, double elements_per_s, int64_t element_bytes);

}  // namespace penstock::bench
