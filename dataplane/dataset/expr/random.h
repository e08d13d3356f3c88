// SPDX-License-Identifier: Apache-2.0
// The counter-based generator that RandomBits uses.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/dataset/expr/function.h"

namespace penstock {

// Runs ten rounds. The result is the same on every machine.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Returns the key of random operation `number` of a function, so that each operation has its own
// draws. Nodes are numbered 0, 1, 2, …; a node's operations are numbered from the node's number on,
// in golden-ratio steps, so that operations of different nodes never get the same key.
RandomKey KeyOfOp(const RandomKey& key, int64_t number);

}  // namespace penstock
