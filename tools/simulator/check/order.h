// SPDX-License-Identifier: Apache-2.0
// Checks the order of a job with a fixed order (docs/exactly_once.md, "A fixed order"), also where
// a trainer continues from a state: each history is a piece of the order without a gap. With
// several consumers, it is a piece of what the order gives to its consumer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/simulator/check/history.h"

namespace penstock::simulator {

// `histories`: of one pass. `ends`: of all its partitions. `consumers`: 1 for one reader at a time.
// Returns violations.
std::vector<std::string> CheckOrder(const Histories& histories,
                                    const std::vector<std::optional<Index>>& ends,
                                    int64_t consumers);

}  // namespace penstock::simulator
