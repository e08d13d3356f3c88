// SPDX-License-Identifier: Apache-2.0
// Finds out which of a launcher's processes this one is: from Slurm's variables, or from the
// command line for other launchers.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace penstock::bench {

struct Rank {
  int number = 0;  // below `count`; 0 is the leader
  int count = 1;
  int node = 0;        // equal for ranks on one node
  std::string leader;  // "HOST:PORT" of rank 0; empty if there is only one rank
  std::string job;     // tells apart launches that meet at one address; may be empty
};

// The command line's values. A negative number or an empty text is not given.
struct GivenRank {
  int number = -1, count = -1;
  std::string leader;
};

// Returns an environment variable, if it is set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// Takes the command line first, then SLURM_PROCID, SLURM_NTASKS and SLURM_NODEID. The default
// leader is the first node of the step, at a port computed from the job's number. Returns one rank
// if neither is given. InvalidArgument, naming the wrong or missing value.
absl::StatusOr<Rank> FindRank(const GivenRank& given, const Environment& environment);

// Returns the first host of a list in Slurm's syntax: gpu07 for "gpu[07-09,12],login".
std::string FirstHost(const std::string& list);

}  // namespace penstock::bench
