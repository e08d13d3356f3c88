// SPDX-License-Identifier: Apache-2.0
// What moves bytes within a host or between two: one row of the table, from what
// the memory or the wire can do up to our own protocols.
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
  std::string protocol, variant;    // as in a row
  std::vector<std::string> beside;  // names of levels that are limits of this one
  // Starts what moves elements of so many bytes, with a folder for its files.
  std::function<absl::StatusOr<std::unique_ptr<Side>>(int64_t bytes, const std::string& scratch)>
      start;
  absl::Status left_out;     // why this machine, or these two, cannot run it
  double line_gb_per_s = 0;  // of the ports that it goes through; 0: not known
  bool quick = false;        // one of the few that say whether a link is well

  std::string name() const;  // what a limit is called in a row
};

// Levels within this host. `protocols` are those of ours, as `--protocol` names them.
std::vector<Level> HostLevels(const Survey& here, const std::vector<std::string>& protocols);

// Levels between this host and the other, from there to here.
std::vector<Level> LinkLevels(const Hosts& hosts, const Survey& here, const Survey& there,
                              const std::vector<std::string>& protocols);

// Levels from all other hosts to this one at the same time: what a switch cannot carry shows there
// and in no pair. At least two hosts.
std::vector<Level> ManyToOneLevels(const std::vector<Hosts>& pairs,
                                   const std::vector<std::string>& protocols);

// Those of NVIDIA's driver (gpu.cc): between memory and the GPU, and between two GPUs.
std::vector<Level> GpuLevels();

// One thread that copies an element made once into 4 slots in turn.
std::unique_ptr<Side> MakeMemcpySide(int64_t bytes);

// Several sides that move at the same time, as one.
std::unique_ptr<Side> MakeTogether(std::vector<std::unique_ptr<Side>> sides);

}  // namespace penstock::bench
