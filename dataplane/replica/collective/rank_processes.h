// SPDX-License-Identifier: Apache-2.0
// A host communicator of the processes of a launch. Rank 0's end has the server, to which the other
// ranks connect over TCP. If a process is killed, its connection ends at once; the loss of a
// machine is noticed after `silence`. If rank 0 is lost, the communicator ends for all ranks. Any
// process that can reach rank 0's address may join, so use this only on a trainer's own network,
// like NCCL's rendezvous.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "dataplane/replica/collective/collective.h"

namespace penstock::replica {

struct RankProcesses {
  std::string address;  // host:port where rank 0 listens
  std::string launch;   // the same in all processes of a launch
  int rank = 0;
  int ranks = 1;
  absl::Duration connect_timeout = absl::Seconds(60);
  absl::Duration silence = absl::Seconds(10);
};

// Returns once all ranks are connected. Returns DeadlineExceeded naming the missing ranks,
// InvalidArgument for a bad address, FailedPrecondition if rank 0 has a different launch or number
// of ranks, or if this rank is already connected, and Unavailable if rank 0 cannot listen.
absl::StatusOr<std::unique_ptr<Collective>> ConnectRanks(const RankProcesses& processes);

}  // namespace penstock::replica
