// SPDX-License-Identifier: Apache-2.0
// Brings the ranks together. The others connect to the leader. It gives a key to each needed rank,
// the first of its node. With the key, the leader runs commands there through `penstock
// bench-there` (agent.h):
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

// The variable in which the leader's child processes find the key.
inline constexpr char kKeyVariable[] = "PENSTOCK_BENCH_KEY";

// Sets the variable to a new key. REQUIRES: no other thread yet, since setenv is not thread-safe.
void MakeKey();

// A rank on another host that runs commands for the leader.
struct Attendee {
  int rank = 0;
  Hosts hosts;
  std::string agent;  // "HOST:PORT" of its agent
};

class Meeting {
 public:
  // Returns when all others have come, or after `bound`. Calls MakeKey(). Unavailable if it cannot
  // listen at the leader's address, Cancelled when interrupted. REQUIRES: rank 0 of several.
  static absl::StatusOr<Meeting> Gather(const Rank& self, absl::Duration bound);

  const std::vector<Attendee>& attendees() const { return attendees_; }
  const std::vector<int>& missing() const { return missing_; }  // ranks that did not come

 private:
  std::vector<Attendee> attendees_;
  std::vector<int> missing_;
  std::vector<Connection> connections_;  // when they close, the other ranks end
};

}  // namespace penstock::bench
