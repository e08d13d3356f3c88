// SPDX-License-Identifier: Apache-2.0
// The addresses of an etcd cluster and a prefix of its keys, as a URL:
// "etcd://a:2379,b:2379,c:2379/penstock", or "etcds://…" over TLS.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::control {

struct EtcdAddress {
  std::vector<std::string> endpoints;  // "host:port" each
  bool tls = false;
  std::string prefix;  // begins and ends with "/"
};

// Parses the URL. InvalidArgument if it is malformed, or has no endpoint or no prefix.
absl::StatusOr<EtcdAddress> ParseEtcdAddress(const std::string& text);

}  // namespace penstock::control
