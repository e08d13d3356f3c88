// SPDX-License-Identifier: Apache-2.0
// The listening port of a worker.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/transfer/unauthenticated_limits.h"

namespace penstock::transfer::tcp {

// Listens with one thread for the port and all its links. The thread is joined when the listener is
// destroyed.
absl::StatusOr<std::unique_ptr<Listener>> StartListener(const ListenOptions& options,
                                                        Listener::Accept accept,
                                                        UnauthenticatedLimits limits = {});

}  // namespace penstock::transfer::tcp
