// SPDX-License-Identifier: Apache-2.0
// Measures between any two hosts. The reader's host runs `penstock bench-pair`, which measures and
// prints its rows as one line. The sender's agent (agent.h) starts the sending side.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/cluster/agent.h"
#include "bench/row.h"

namespace penstock::bench {

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
