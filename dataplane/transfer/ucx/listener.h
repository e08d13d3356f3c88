// SPDX-License-Identifier: Apache-2.0
// A worker's address and the links at it.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/transfer/ucx/memory.h"
#include "dataplane/transfer/ucx/settings.h"

namespace penstock::transfer::ucx {

// One thread for the address and all its links; it is joined when the listener goes.
absl::StatusOr<std::unique_ptr<Listener>> StartListener(Resources& resources,
                                                        const Settings& settings,
                                                        Listener::Accept accept);

}  // namespace penstock::transfer::ucx
