// SPDX-License-Identifier: Apache-2.0
// Converts statuses to and from gRPC's.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace penstock::transfer {

// Cuts the message to the length that gRPC's trailers can carry.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace penstock::transfer
