// SPDX-License-Identifier: Apache-2.0
// A worker's port.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer::tcp {

// Connections whose hello was not accepted yet; beyond that the one that waits
// longest is dropped. Together with kMaxHelloBytes this bounds what strangers cost.
inline constexpr size_t kMaxStrangers = 64;

// One thread for the port and all its links; it is joined when the listener goes.
absl::StatusOr<std::unique_ptr<Listener>> StartListener(const ListenOptions& options,
                                                        Listener::Accept accept);

}  // namespace penstock::transfer::tcp
