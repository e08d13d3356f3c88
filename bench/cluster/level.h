// SPDX-License-Identifier: Apache-2.0
// A way to move bytes within a host or between two hosts: one row of the table. Levels range from
// the limits of memory and wire to our own protocols.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/cluster/survey.h"
#include "bench/side.h"

namespace penstock::bench {

struct Level {
  std::string system = "penstock";
  std::string protocol, variant;    // as in a Row
  std::vector<std::string> beside;  // names of levels that limit this one
  // Starts a side that moves elements of `bytes` bytes. Its files are in `scratch`.
  std::function<absl::StatusOr<std::unique_ptr<Side>>(int64_t bytes, const std::string& scratch)>
      start;
  absl::Status left_out;     // why the hosts cannot run it
  double line_gb_per_s = 0;  // rate of the ports in use; 0: unknown
  bool quick = false;        // among the few levels that show whether a link is healthy

  std::string name() const;  // its name as a limit in a row
};

// Returns the levels within this host. `protocols` are our own, as `--protocol` names them.
std::vector<Level> HostLevels(const Survey& here, const std::vector<std::string>& protocols);

// Returns the levels between this host and the other, from there to here.
std::vector<Level> LinkLevels(const Hosts& hosts, const Survey& here, const Survey& there,
                              const std::vector<std::string>& protocols);

// Returns the levels from all other hosts to this one at the same time. They show limits of a
// switch, which no pair shows. REQUIRES: at least two hosts.
std::vector<Level> ManyToOneLevels(const std::vector<Hosts>& pairs,
                                   const std::vector<std::string>& protocols);

// Returns the levels of NVIDIA's driver (gpu.cc): between memory and the GPU, and between two GPUs.
std::vector<Level> GpuLevels();

// Makes one thread that copies an element, made once, into 4 slots in turn.
std::unique_ptr<Side> MakeMemcpySide(int64_t bytes);

// Combines several sides, which move elements at the same time.
std::unique_ptr<Side> MakeTogether(std::vector<std::unique_ptr<Side>> sides);

}  // namespace penstock::bench
