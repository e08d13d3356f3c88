// SPDX-License-Identifier: Apache-2.0
// A worker's address and the links to it.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/transfer/ucx/memory.h"
#include "dataplane/transfer/ucx/settings.h"

namespace penstock::transfer::ucx {

// Listens with one thread for the address and all its links. The thread is joined when the listener
// is destroyed.
absl::StatusOr<std::unique_ptr<Listener>> StartListener(Resources& resources,
                                                        const Settings& settings,
                                                        Listener::Accept accept);

}  // namespace penstock::transfer::ucx
