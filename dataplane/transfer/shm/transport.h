// SPDX-License-Identifier: Apache-2.0
// `shm`: worker and client in two processes of one host. Elements are read where the worker wrote
// them.
#pragma once

#include <memory>

#include "dataplane/transfer/transport.h"

namespace penstock::transfer::shm {

std::unique_ptr<Transport> MakeShmTransport();

}  // namespace penstock::transfer::shm
