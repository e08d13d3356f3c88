// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "dataplane/transfer/transport.h"

namespace penstock::transfer {

// "ucx": over RDMA, by UCX, which is opened when it is first used. How: README.md.
std::unique_ptr<Transport> MakeUcxTransport();

}  // namespace penstock::transfer
