// SPDX-License-Identifier: Apache-2.0
// The tokens of jobs, with a key that is the same in each life of a test's core.
#pragma once

#include <cstdint>
#include <string>

#include "control/dispatcher/server/job_key.h"

namespace penstock::control {

// For CoreOptions::job_tokens.
inline absl::StatusOr<JobTokens> FixedTokens(uint64_t /*needed*/) {
  return TokensWith(std::string(kJobKeyBytes, 'k'));
}

}  // namespace penstock::control
