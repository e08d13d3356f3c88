// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/grpc/convert.h"

#include <string>

namespace penstock::transfer {
namespace {

// gRPC refuses trailers above 8 KiB, and each byte may take three bytes on the wire.
constexpr size_t kMaxMessageBytes = 2048;

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message().substr(0, kMaxMessageBytes)));
}

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace penstock::transfer
