// SPDX-License-Identifier: Apache-2.0
// `local`: worker and client in one process. Nothing is copied.
#pragma once

#include <memory>

#include "dataplane/transfer/transport.h"

namespace penstock::transfer::local {

std::unique_ptr<Transport> MakeLocalTransport();

}  // namespace penstock::transfer::local
