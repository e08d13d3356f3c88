// SPDX-License-Identifier: Apache-2.0
// A worker's port.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer::tcp {

// What those who have not been let in may take. With kMaxHelloBytes this bounds
// what strangers cost.
struct StrangerLimits {
  size_t count = 64;  // beyond it the one that waits longest is dropped
  std::chrono::milliseconds hello_timeout = std::chrono::seconds(10);
};

// One thread for the port and all its links; it is joined when the listener goes.
absl::StatusOr<std::unique_ptr<Listener>> StartListener(const ListenOptions& options,
                                                        Listener::Accept accept,
                                                        StrangerLimits limits = {});

}  // namespace penstock::transfer::tcp
