// SPDX-License-Identifier: Apache-2.0
// A worker's port.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/transfer/unauthenticated_limits.h"

namespace penstock::transfer::tcp {

// One thread for the port and all its links; it is joined when the listener goes.
absl::StatusOr<std::unique_ptr<Listener>> StartListener(const ListenOptions& options,
                                                        Listener::Accept accept,
                                                        UnauthenticatedLimits limits = {});

}  // namespace penstock::transfer::tcp
