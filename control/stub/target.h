// SPDX-License-Identifier: Apache-2.0
// The address of a dispatcher: "[protocol://]host:port". "grpcs" is gRPC over TLS. scheme.h
// adds other protocols.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace penstock::control {

struct Target {
  std::string protocol;  // "grpc", "grpcs" or a registered scheme
  std::string address;   // "host:port"

  bool tls() const { return protocol == "grpcs"; }
};

// Parses an address. Without a protocol in the text, the protocol is "grpc". InvalidArgument for an
// empty or malformed text. NotFound for an unknown control protocol, with the list of known
// protocols.
absl::StatusOr<Target> ParseTarget(std::string_view service);

}  // namespace penstock::control
