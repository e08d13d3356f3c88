// SPDX-License-Identifier: Apache-2.0
// The properties that two processes must have in common in order to share memory.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace penstock::transfer::shm {

// Describes this process: protocol version, machine (boot), namespaces, user.
std::string DescribeHost();

// Returns OK if a process with the description `theirs` can be reached from a process with the
// description `ours`, else NotFound with the difference.
absl::Status CheckSameHost(std::string_view theirs, std::string_view ours);

}  // namespace penstock::transfer::shm
