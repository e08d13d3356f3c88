// SPDX-License-Identifier: Apache-2.0
// Random numbers from the system. All randomness that does not come from a seed enters here, so
// that a simulation can replace it. Any thread may call these functions.
#pragma once

#include <cstdint>

namespace penstock {

// Returns 64 random bits that nobody can guess, for names, ids, and seeds that the user did not
// give.
uint64_t RandomNumber();
// Returns such a number, but never 0, which is not a valid id.
uint64_t RandomId();

// Returns a uniformly distributed number ≥ `low` and < `high`, for pauses that different processes
// should not end at the same time.
double RandomBetween(double low, double high);

}  // namespace penstock
