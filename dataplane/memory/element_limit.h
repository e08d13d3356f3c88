// SPDX-License-Identifier: Apache-2.0
// How large one element may become in this process. A larger element is refused with an error
// before memory is allocated for it.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace penstock {

// Returns the maximum size in bytes of an element, and of anything that it is made from (such as a
// record, or a value that a function computes). This is half of UsableMemory(), or in a worker its
// memory budget. Any thread.
int64_t MostElementBytes();

// Sets the limit for the whole process, from now on. Any thread.
void LimitElementBytes(int64_t bytes);

// Returns ResourceExhausted with the limit and the remedy. `what` names the object that exceeds the
// limit, such as "a record of 8 bytes".
absl::Status AboveElementLimit(std::string_view what);

}  // namespace penstock
