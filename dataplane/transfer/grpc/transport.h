// SPDX-License-Identifier: Apache-2.0
// `grpc`: a bidirectional gRPC stream per link, through whatever passes HTTP/2.
// Messages are our own (message.h); a block travels as a slice that points into
// its slot, and is received in a slot by one copy.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/transfer/unauthenticated_limits.h"

namespace penstock::transfer {

std::unique_ptr<Transport> MakeGrpcTransport();

// As its Listen(), with limits for those who have not said who they are.
absl::StatusOr<std::unique_ptr<Listener>> StartGrpcListener(const ListenOptions& options,
                                                            Listener::Accept accept,
                                                            UnauthenticatedLimits limits = {});

}  // namespace penstock::transfer
