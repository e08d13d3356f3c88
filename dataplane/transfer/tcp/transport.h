// SPDX-License-Identifier: Apache-2.0
// `tcp`: one or more connections per link, over sockets that Penstock itself serves. A block is
// written from its own memory and read straight into a slot.
#pragma once

#include <memory>

#include "dataplane/transfer/transport.h"

namespace penstock::transfer {

std::unique_ptr<Transport> MakeTcpTransport();

}  // namespace penstock::transfer
