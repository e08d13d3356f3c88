// SPDX-License-Identifier: Apache-2.0
// Where a dispatcher is: "[protocol://]host:port". "grpcs" is gRPC over TLS.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace penstock::control {

struct Target {
  std::string protocol;  // "grpc" or "grpcs"
  std::string address;   // "host:port"

  bool tls() const { return protocol == "grpcs"; }
};

// The protocol left out is "grpc". InvalidArgument for an empty or malformed
// text, NotFound for a protocol that is not a control protocol (lists them).
absl::StatusOr<Target> ParseTarget(std::string_view service);

}  // namespace penstock::control
