// SPDX-License-Identifier: Apache-2.0
// Any two hosts: the reader's runs `penstock bench-pair`, which measures and writes its rows as one
// line; it has the sender's agent (agent.h) start what sends.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/cluster/agent.h"
#include "bench/row.h"

namespace penstock::bench {

// Rows of levels from the sender to the reader; `flags` are those of bench-pair. Unavailable, with
// what the reader said last.
absl::StatusOr<std::vector<Row>> MeasurePair(const Agent& reader, const Agent& sender,
                                             const std::vector<std::string>& flags,
                                             const std::string& log);

// What bench-pair writes: a row as RunLevels() makes it, without hosts and workload.
nlohmann::json ToJson(const std::vector<Row>& rows);
// InvalidArgument if those are none.
absl::StatusOr<std::vector<Row>> RowsOf(const nlohmann::json& fields);

}  // namespace penstock::bench
