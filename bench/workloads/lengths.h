// SPDX-License-Identifier: Apache-2.0
// Sequences as long as texts are, the same in all processes.
#pragma once

#include <cstdint>

namespace penstock::bench {

// Well mixed bits of a number (splitmix64).
uint64_t Mix(uint64_t number);

// Tokens in sequence `number`: lognormal(5, 1), 16 to 1,024 of them.
int64_t LengthOf(int64_t number);

}  // namespace penstock::bench
