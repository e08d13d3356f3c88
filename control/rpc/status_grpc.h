// SPDX-License-Identifier: Apache-2.0
// Converts absl::Status to and from grpc::Status; the codes are the same numbers.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace penstock::control {

inline grpc::Status ToGrpc(const absl::Status& from) {
  return grpc::Status(static_cast<grpc::StatusCode>(from.code()), std::string(from.message()));
}

inline absl::Status FromGrpc(const grpc::Status& from) {
  return absl::Status(static_cast<absl::StatusCode>(from.error_code()), from.error_message());
}

}  // namespace penstock::control
