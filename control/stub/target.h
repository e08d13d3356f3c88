// SPDX-License-Identifier: Apache-2.0
// The service of a dispatcher: "[protocol://]host:port", or "[protocol://]host:port,host:port" if a
// standby may take its place at another address. "grpcs" is gRPC over TLS. scheme.h adds other
// protocols.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::control {

struct Target {
  std::string protocol;                // "grpc", "grpcs" or a registered scheme
  std::vector<std::string> addresses;  // "host:port" each; one at least, each once

  bool tls() const { return protocol == "grpcs"; }
};

// Parses a service. Without a protocol in the text, the protocol is "grpc". InvalidArgument for an
// empty or malformed text: no address, an empty one, one without a port, white space, or an address
// that occurs twice. NotFound for an unknown control protocol, with the list of known protocols.
absl::StatusOr<Target> ParseTarget(std::string_view service);

}  // namespace penstock::control
