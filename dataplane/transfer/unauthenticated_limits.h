// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "control/observe/connection_pace.h"

namespace penstock::transfer {

// The maximum number of bytes that a worker reads from a client before the client is authenticated:
// a hello, which may list many holdings.
inline constexpr uint64_t kMaxHelloBytes = 1 << 20;

// Bounds on unauthenticated clients. Together with kMaxHelloBytes they bound the cost of such
// clients.
struct UnauthenticatedLimits {
  size_t count = 64;  // above this, the client that has waited longest is dropped
  std::chrono::milliseconds hello_timeout = std::chrono::seconds(10);
  PaceLimits pace = {};  // of their connections
};

}  // namespace penstock::transfer
