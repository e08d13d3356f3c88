// SPDX-License-Identifier: Apache-2.0
// The counter-based generator that RandomBits uses.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/dataset/expr/function.h"

namespace penstock {

// Runs ten rounds. The result is the same on every machine.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Returns the key of random operation `number` of a function, so that each has its own draws. Nodes
// count from 0 in steps of one and operations in golden-ratio steps, which keeps the two apart.
RandomKey KeyOfOp(const RandomKey& key, int64_t number);

}  // namespace penstock
