// SPDX-License-Identifier: Apache-2.0
// What the machine can do without us: the other side of each pair.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/hosts.h"
#include "bench/side.h"
#include "bench/source.h"

namespace penstock::bench {

// What both sides of a pair move.
struct Load {
  int64_t element_bytes = 0;  // ≥ 8
  int64_t source_bytes = kColdBytes;
  Touch touch = Touch::kEveryByte;
  Hosts hosts = {};          // a socket between two: from there to here
  std::string scratch = {};  // for what a process there says
};

// "fill1": one thread copies from the source into 4 slots, a second reads them.
absl::StatusOr<std::unique_ptr<Side>> MakeFillLimit(const Load& load);

// "socket": a process fills 4 slots from the source and writes them to a blocking
// socket, by loopback or from the other host, which is read straight into 4 slots. `congestion`
// control should be that of the side it stands beside; "": the machine's.
absl::StatusOr<std::unique_ptr<Side>> MakeSocketLimit(const Load& load,
                                                      const std::string& congestion);

// The one that fits what `protocol` uses: memory, or sockets with the same
// congestion control.
absl::StatusOr<std::unique_ptr<Side>> MakeTransferLimit(const Load& load,
                                                        const std::string& protocol);

// The process that writes: connects to `host` and fills and writes until the
// reader closes. Unavailable if it cannot connect.
absl::Status ProduceForSocket(const std::string& host, int port, const Load& load,
                              const std::string& congestion);

// `side` for trainers that take so many elements a second and no more: it waits
// when it is ahead of them.
std::unique_ptr<Side> MakePacedLimit(std::unique_ptr<Side> side, double elements_per_s);

// A rate that is asked for, not one of a machine: it has no processes and takes no time.
std::unique_ptr<Side> MakeBar(std::string name, double elements_per_s, int64_t element_bytes);

}  // namespace penstock::bench
