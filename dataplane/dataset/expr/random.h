// SPDX-License-Identifier: Apache-2.0
// The counter-based generator under RandomBits.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/dataset/function.h"

namespace penstock {

// Ten rounds; the same on every machine.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// The key of random operation `number` of a function, so that its draws are its
// own. Nodes count from 0 in ones and operations by a golden-ratio step, which
// keeps the two apart.
RandomKey KeyOfOp(const RandomKey& key, int64_t number);

}  // namespace penstock
