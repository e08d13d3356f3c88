// SPDX-License-Identifier: Apache-2.0
// What rank 0 has done on the host of another rank: that rank runs this program
// there with the arguments it is told, and passes on what it writes. Both ends of
// a command go together: when one dies, so does the other.
//
//   bench-there, on the leader's host        agent
//   {"key": text, "arguments": [words]}    →
//                                          ← "1 line" of its standard output
//                                          ← "2 line", the last of the other, at its end
//   end of the connection                  →  ends it
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bench/cluster/ranks.h"

namespace penstock::bench {

// Goes to the leader, within `bound`, and serves it until it has no more need of
// us. Runs this program alone, and only what measures. REQUIRES: not rank 0.
absl::Status ServeLeader(const Rank& self, absl::Duration bound);

// Runs this program with `arguments` on the host of the agent at "HOST:PORT" and
// writes what it writes. Returns when it has ended, its last words if they were of
// an error as Unavailable.
absl::Status RunThere(const std::string& agent, const std::vector<std::string>& arguments);

}  // namespace penstock::bench
