// SPDX-License-Identifier: Apache-2.0
// The list for PENSTOCK_RPC=OFF: the transports that do not use gRPC.
#include "dataplane/transfer/builtin_transports.h"
#include "dataplane/transfer/local/transport.h"
#include "dataplane/transfer/shm/transport.h"
#include "dataplane/transfer/tcp/transport.h"
#include "dataplane/transfer/ucx/transport.h"

namespace penstock::transfer {

std::vector<std::unique_ptr<Transport>> BuiltinTransports() {
  std::vector<std::unique_ptr<Transport>> transports;
  transports.push_back(local::MakeLocalTransport());
  transports.push_back(shm::MakeShmTransport());
  transports.push_back(MakeUcxTransport());
  transports.push_back(MakeTcpTransport());
  return transports;
}

}  // namespace penstock::transfer
