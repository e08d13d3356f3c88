// SPDX-License-Identifier: Apache-2.0
// Finds out who makes a request: by a token, or by the subject of a certificate that TLS verified.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "control/protocol/principal.h"

namespace penstock::control {

// The credentials that came with a request.
struct PeerCredentials {
  std::string token;                           // of "authorization: Bearer …"; empty: none
  std::vector<std::string> certificate_names;  // common name and alternative names; empty: none
};

// Any thread may call any method.
class Authenticator {
 public:
  // Reads `auth_file`, and reads it again whenever it has changed. An empty `auth_file` means that
  // there is no such file. NotFound if it cannot be read; InvalidArgument "file:line: …" for a line
  // that is not valid.
  static absl::StatusOr<std::unique_ptr<Authenticator>> Open(const std::string& auth_file);
  virtual ~Authenticator() = default;

  // Returns the principal; nullopt if there is no auth_file. Unauthenticated if the peer presented
  // neither a known token nor a known certificate.
  virtual absl::StatusOr<Caller> Identify(const PeerCredentials& peer) const = 0;
};

}  // namespace penstock::control
