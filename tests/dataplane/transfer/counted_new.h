// SPDX-License-Identifier: Apache-2.0
// Counts every operator new of a program that links counted_new.cc.
#pragma once

#include <cstdint>

namespace penstock::transfer {

// Returns the number of calls since the program began, in all threads.
int64_t Allocations();

// Returns the number of calls since the calling thread began, in this thread alone.
int64_t AllocationsOfThisThread();

}  // namespace penstock::transfer
