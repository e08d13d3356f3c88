// SPDX-License-Identifier: Apache-2.0
// Random numbers from the system. All randomness that is not given by a seed enters here, so that
// a simulator can replace it. Any thread.
#pragma once

#include <cstdint>

namespace penstock {

// Returns 64 random bits, which nobody can guess: for names, ids, and seeds that were not given.
uint64_t RandomNumber();
// The same, but never 0, which is no id.
uint64_t RandomId();

// Returns a number ≥ `low` and < `high`, all equally likely: for pauses that processes should not
// end at the same time.
double RandomBetween(double low, double high);

}  // namespace penstock
