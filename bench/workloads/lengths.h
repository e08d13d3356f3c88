// SPDX-License-Identifier: Apache-2.0
// Sequences with the lengths of texts, the same in all processes.
#pragma once

#include <cstdint>

namespace penstock::bench {

// Returns well mixed bits of a number (splitmix64).
uint64_t Mix(uint64_t number);

// Returns the tokens of sequence `number`: lognormal(5, 1), from 16 to 1,024.
int64_t LengthOf(int64_t number);

}  // namespace penstock::bench
