// SPDX-License-Identifier: Apache-2.0
// Checks the shards of the modes DATA and HINT (docs/protocol.md, "Shards"): of n partitions, each
// has every n-th element of the dataset, in order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/simulator/check/exactly_once.h"
#include "tools/simulator/check/history.h"

namespace penstock::simulator {

// `histories`: of one pass. Returns violations.
std::vector<std::string> CheckShards(const Histories& histories, int64_t partitions,
                                     const ExpectedElements& expected);

}  // namespace penstock::simulator
