// SPDX-License-Identifier: Apache-2.0
// The transports of this build. CMake chooses the file that defines the list.
#pragma once

#include <memory>
#include <vector>

#include "dataplane/transfer/transport.h"

namespace penstock::transfer {

std::vector<std::unique_ptr<Transport>> BuiltinTransports();

}  // namespace penstock::transfer
