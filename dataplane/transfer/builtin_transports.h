// SPDX-License-Identifier: Apache-2.0
// The transports this build has; which file defines it, CMake decides.
#pragma once

#include <memory>
#include <vector>

#include "dataplane/transfer/transport.h"

namespace penstock::transfer {

std::vector<std::unique_ptr<Transport>> BuiltinTransports();

}  // namespace penstock::transfer
