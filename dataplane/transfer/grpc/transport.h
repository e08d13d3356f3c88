// SPDX-License-Identifier: Apache-2.0
// `grpc`: one bidirectional gRPC stream per link. It works through any proxy that passes HTTP/2.
// The messages are Penstock's own (message.h). A block is sent as a slice that points into its
// slot; the receiver copies it once, into a slot of its own.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/transfer/unauthenticated_limits.h"

namespace penstock::transfer {

std::unique_ptr<Transport> MakeGrpcTransport();

// Like the transport's Listen(), with limits for unauthenticated clients.
absl::StatusOr<std::unique_ptr<Listener>> StartGrpcListener(const ListenOptions& options,
                                                            Listener::Accept accept,
                                                            UnauthenticatedLimits limits = {});

}  // namespace penstock::transfer
