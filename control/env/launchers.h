// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace penstock {

// Environment variables that a launcher sets in each process that it starts: the process's rank,
// the number of processes, the number of processes on this machine (nullptr: the launcher does not
// report it), and the id of the launch.
struct Launcher {
  const char* rank;
  const char* world;
  const char* local_world;
  const char* launch;
};
inline constexpr Launcher kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
    {"SLURM_PROCID", "SLURM_NTASKS", nullptr, "SLURM_JOB_ID"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "PMIX_NAMESPACE"},
};

}  // namespace penstock
