// SPDX-License-Identifier: Apache-2.0
// Converts absl::Status to and from grpc::Status; the codes are the same numbers.
#pragma once

#include <grpcpp/support/status.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace penstock::control {

// The maximum size of a message. gRPC refuses trailers of more than 8 KiB, and one byte of a
// message may take three bytes in a trailer.
inline constexpr size_t kMaxGrpcMessageBytes = 2048;

// Cuts off the part of the message beyond kMaxGrpcMessageBytes.
inline grpc::Status ToGrpc(const absl::Status& from) {
  return grpc::Status(static_cast<grpc::StatusCode>(from.code()),
                      std::string(from.message().substr(0, kMaxGrpcMessageBytes)));
}

inline absl::Status FromGrpc(const grpc::Status& from) {
  return absl::Status(static_cast<absl::StatusCode>(from.error_code()), from.error_message());
}

}  // namespace penstock::control
