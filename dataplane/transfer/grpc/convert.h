// SPDX-License-Identifier: Apache-2.0
// Statuses as gRPC carries them.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace penstock::transfer {

// The message is cut where gRPC's trailers would not carry it.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace penstock::transfer
