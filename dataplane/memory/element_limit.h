// SPDX-License-Identifier: Apache-2.0
// How large one element may become in this process, so that one that no budget has room for is an
// error before memory is taken for it.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace penstock {

// Bytes that an element may take, or what it is made from: a record, a value of a function. Half of
// UsableMemory(); in a worker its memory budget. Any thread.
int64_t MostElementBytes();

// For the whole process, from now on. Any thread.
void LimitElementBytes(int64_t bytes);

// ResourceExhausted, with that number and the way out: `what` is more, as "a record of 8 bytes".
absl::Status AboveElementLimit(std::string_view what);

}  // namespace penstock
