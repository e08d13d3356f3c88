// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace penstock::transfer {

// What a worker takes of a client before it knows who it is: a hello, which may name many holdings.
inline constexpr uint64_t kMaxHelloBytes = 1 << 20;

// What those who have not been let in may take. With kMaxHelloBytes this bounds
// what unauthenticated clients cost.
struct UnauthenticatedLimits {
  size_t count = 64;  // beyond it the one that waits longest is dropped
  std::chrono::milliseconds hello_timeout = std::chrono::seconds(10);
};

}  // namespace penstock::transfer
