// SPDX-License-Identifier: Apache-2.0
// Checks the shards of the modes FILE, DATA and HINT (docs/protocol.md, "Shards"): of n partitions,
// each has every n-th part of the dataset, in order. A part is an element or, in mode FILE, a file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/simulator/check/exactly_once.h"
#include "tools/simulator/check/history.h"

namespace penstock::simulator {

// `histories`: of one pass. `part_of`: returns the part that has element 0, 1, … of the dataset.
// Returns violations.
std::vector<std::string> CheckShards(const Histories& histories, int64_t partitions,
                                     const ExpectedElements& expected,
                                     const std::function<int64_t(int64_t)>& part_of);

}  // namespace penstock::simulator
