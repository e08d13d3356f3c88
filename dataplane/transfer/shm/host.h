// SPDX-License-Identifier: Apache-2.0
// What two processes must have in common to share memory.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace penstock::transfer {

// Of this process: protocol version, machine (boot), namespaces, user.
std::string DescribeHost();

// Whether a process that describes itself so can be reached from one that does
// as `ours`; NotFound with the difference in words.
absl::Status CheckSameHost(std::string_view theirs, std::string_view ours);

}  // namespace penstock::transfer
