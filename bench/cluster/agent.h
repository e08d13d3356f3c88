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

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/cluster/ranks.h"
#include "bench/process.h"

namespace penstock::bench {

// Goes to the leader, within `bound`, and serves it until it has no more need of
// us. Runs this program alone, and only what measures. REQUIRES: not rank 0.
absl::Status ServeLeader(const Rank& self, absl::Duration bound);

// An agent without ranks: `penstock bench-agent`, started by the leader.
struct Agent {
  std::string host;                  // where it serves
  std::string address;               // "HOST:PORT"
  std::unique_ptr<Process> process;  // it ends with this; null: a rank's
};
// Starts it at an address of its host, by the words before this program's arguments there.
// REQUIRES: MakeKey() (meeting.h).
absl::StatusOr<Agent> StartAgent(std::vector<std::string> words, const std::string& host,
                                 const std::string& log);
// What it does: reads the key from standard input, writes its port, and serves until that input
// ends.
absl::Status ServeAt(const std::string& host);

// Runs this program with `arguments` on the host of the agent at "HOST:PORT" and
// writes what it writes. Returns when it has ended, its last words if they were of
// an error as Unavailable.
absl::Status RunThere(const std::string& agent, const std::vector<std::string>& arguments);

}  // namespace penstock::bench
