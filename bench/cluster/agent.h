// SPDX-License-Identifier: Apache-2.0
// Runs rank 0's commands on the host of another rank. That rank runs this program with the given
// arguments and passes on its output. Both ends of a command end together: when one dies, so does
// the other.
//
//   bench-there, on the leader's host        agent
//   {"key": text, "arguments": [words]}    →
//                                          ← "1 LINE" for each line of its standard output
//                                          ← "2 LINE" at its end: the last line of its stderr
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

// Connects to the leader within `bound` and serves it until it needs no more. Runs only this
// program, and only its measuring subcommands. REQUIRES: not rank 0.
absl::Status ServeLeader(const Rank& self, absl::Duration bound);

// An agent that needs no ranks: `penstock bench-agent`, started by the leader.
struct Agent {
  std::string host;                  // host on which it serves
  std::string address;               // "HOST:PORT"
  std::unique_ptr<Process> process;  // ends with this object; null: a rank's agent
};
// Starts an agent at an address of its host. `words` precede this program's arguments there.
// REQUIRES: MakeKey() (meeting.h).
absl::StatusOr<Agent> StartAgent(std::vector<std::string> words, const std::string& host,
                                 const std::string& log);
// The agent's main function: reads the key from standard input, prints its port, and serves until
// standard input ends.
absl::Status ServeAt(const std::string& host);

// Runs this program with `arguments` on the host of the agent at "HOST:PORT" and prints its output.
// Returns when it has ended; Unavailable with its last output if it failed.
absl::Status RunThere(const std::string& agent, const std::vector<std::string>& arguments);

}  // namespace penstock::bench
