// SPDX-License-Identifier: Apache-2.0
// To add a protocol, add a folder and one line here.
#include "dataplane/transfer/builtin_transports.h"

#include "dataplane/transfer/grpc/transport.h"
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
  transports.push_back(MakeGrpcTransport());
  return transports;
}

}  // namespace penstock::transfer
