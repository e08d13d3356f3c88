// SPDX-License-Identifier: Apache-2.0
// Measures between any two hosts. The reader's host runs `penstock bench-pair`, which measures and
// prints its rows as one line. The sender's agent (launch.py) starts the sending side.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/hosts.h"
#include "bench/process.h"
#include "bench/row.h"

namespace penstock::bench {

// Makes the key that commands need for the agents that this process starts. REQUIRES: no other
// thread runs yet, since setenv is not thread-safe.
void MakeKey();

// A process that runs commands for the bench on its host: launch.py.
struct Agent {
  std::string host;                  // host on which it serves
  std::string address;               // "HOST:PORT"
  std::unique_ptr<Process> process;  // ends with this object; null: a rank's agent
};
// Starts an agent at an address of its host. `words` precede this program's arguments there.
// REQUIRES: MakeKey().
absl::StatusOr<Agent> StartAgent(std::vector<std::string> words, const std::string& host,
                                 const std::string& log);

// Returns rows of levels from the sender to the reader. `flags` are those of bench-pair.
// Unavailable, with the reader's last output, if that fails.
absl::StatusOr<std::vector<Row>> MeasurePair(const Agent& reader, const Agent& sender,
                                             const std::vector<std::string>& flags,
                                             const std::string& log);

// Makes the output of bench-pair: rows of RunLevels() without hosts and workload.
nlohmann::json ToJson(const std::vector<Row>& rows);
// Reads that output. InvalidArgument for any other JSON.
absl::StatusOr<std::vector<Row>> RowsOf(const nlohmann::json& fields);

}  // namespace penstock::bench
