// SPDX-License-Identifier: Apache-2.0
// A host communicator of the processes of a launch. That of rank 0 has the server; the
// others connect to it over TCP. A process that is killed is known to be gone at
// once, from its connection; a machine that is, after `silence`. If rank 0 goes, all
// have lost it. Whoever can reach the address may join: for a trainer's own network,
// as NCCL's rendezvous is.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "dataplane/replica/collective.h"

namespace penstock::replica {

struct RankProcesses {
  std::string address;  // host:port; there rank 0 listens
  std::string launch;   // the same in all processes of a launch
  int rank = 0;
  int ranks = 1;
  absl::Duration connect_timeout = absl::Seconds(60);
  absl::Duration silence = absl::Seconds(10);
};

// When all ranks are there. DeadlineExceeded naming the missing ones, InvalidArgument
// for a bad address, FailedPrecondition if rank 0 is of another launch or number of
// ranks, or has such a rank already; Unavailable if rank 0 cannot listen.
absl::StatusOr<std::unique_ptr<Collective>> ConnectRanks(const RankProcesses& processes);

}  // namespace penstock::replica
