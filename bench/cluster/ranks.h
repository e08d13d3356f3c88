// SPDX-License-Identifier: Apache-2.0
// Which of the processes that one launcher started this is. Slurm tells each in
// variables; of others the command line tells.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace penstock::bench {

struct Rank {
  int number = 0;  // of `count`; 0 leads
  int count = 1;
  int node = 0;        // ranks of one node have the same
  std::string leader;  // "HOST:PORT" at which rank 0 is met; empty if there is but one rank
  std::string job;     // tells launches apart that meet at one place; may be empty
};

// What the command line says; a negative number or an empty text: nothing.
struct GivenRank {
  int number = -1, count = -1;
  std::string leader;
};

// An environment variable, if it is set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// The command line first, then SLURM_PROCID, SLURM_NTASKS, SLURM_NODEID, and as
// the leader the first node of the step at a port made of the job's number; one
// rank if neither says anything. InvalidArgument, naming what is wrong or missing.
absl::StatusOr<Rank> FindRank(const GivenRank& given, const Environment& environment);

// The first of the hosts of a list as Slurm writes it: of "gpu[07-09,12],login" gpu07.
std::string FirstHost(const std::string& list);

}  // namespace penstock::bench
