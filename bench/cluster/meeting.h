// SPDX-License-Identifier: Apache-2.0
// Ranks find each other. The others come to the leader, which tells each that is
// needed, the first of its node, a key; with it the leader has the other do
// what it wants done there, through `penstock bench-there` (agent.h):
//
//   other rank                       leader
//   {"job", "rank", "node", "port"} →
//                                   ← {"key": text}, or {"bye": true}: not needed
//   (the connection stays)            closes it at the end
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/cluster/connection.h"
#include "bench/cluster/ranks.h"
#include "bench/hosts.h"

namespace penstock::bench {

// The variable in which the leader's children find the key.
inline constexpr char kKeyVariable[] = "PENSTOCK_BENCH_KEY";

// Sets it, to a new one. REQUIRES: no other thread yet, since this is of the environment.
void MakeKey();

// A rank on another host that does what the leader wants done there.
struct Attendee {
  int rank = 0;
  Hosts hosts;
  std::string agent;  // "HOST:PORT" of its agent
};

class Meeting {
 public:
  // REQUIRES: rank 0 of several. Calls MakeKey(). Returns when all others have come or after
  // `bound`. Unavailable if it cannot listen where it is to be met, Cancelled when interrupted.
  static absl::StatusOr<Meeting> Gather(const Rank& self, absl::Duration bound);

  const std::vector<Attendee>& attendees() const { return attendees_; }
  const std::vector<int>& missing() const { return missing_; }  // ranks that did not come

 private:
  std::vector<Attendee> attendees_;
  std::vector<int> missing_;
  std::vector<Connection> connections_;  // at their end the others go
};

}  // namespace penstock::bench
