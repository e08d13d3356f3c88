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

// If gRPC itself breaks off a call because its memory quota is used up, the peer reads
// RESOURCE_EXHAUSTED, but it is worth trying again, unlike a refusal that Penstock sends. Such a
// call ends with a frame instead of a status, and gRPC writes this message. It becomes Unavailable.
inline absl::Status FromGrpc(const grpc::Status& from) {
  if (from.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
      from.error_message().starts_with("Received RST_STREAM")) {
    return absl::UnavailableError("the peer has no memory left for messages that arrive");
  }
  return absl::Status(static_cast<absl::StatusCode>(from.error_code()), from.error_message());
}

}  // namespace penstock::control
