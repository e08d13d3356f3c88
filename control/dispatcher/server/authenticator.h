// SPDX-License-Identifier: Apache-2.0
// Finds out who makes a request: by a token, or by the subject of a certificate that TLS verified.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/observe/event_log.h"
#include "control/protocol/principal.h"

namespace penstock::control {

// The credentials that came with a request.
struct PeerCredentials {
  std::string token;                           // of "authorization: Bearer …"; empty: none
  std::vector<std::string> certificate_names;  // common name and alternative names; empty: none
  std::string address;                         // for events
};

// The minimum time between two looks at the file, and between two events of refused peers.
inline constexpr absl::Duration kAuthFileInterval = absl::Seconds(1);

// Any thread may call any method.
class Authenticator {
 public:
  // Reads `auth_file`; empty: there is none. The file is read again when it has changed.
  // If the new content is not valid, the old one stays in force. Events: "auth_file_read",
  // "auth_file_refused", "unauthenticated". `now` is the time since boot. NotFound if the file
  // cannot be read; InvalidArgument "file:line: …" for a line that is not valid.
  static absl::StatusOr<std::unique_ptr<Authenticator>> Open(const std::string& auth_file,
                                                             std::shared_ptr<EventLog> events,
                                                             std::function<absl::Time()> now);
  virtual ~Authenticator() = default;

  // Returns the principal; nullopt if there is no auth_file. A token has precedence over a
  // certificate. Unauthenticated if the peer presented neither a known token nor a known
  // certificate, or a certificate with the names of two principals.
  virtual absl::StatusOr<Caller> Identify(const PeerCredentials& peer) = 0;

  // Returns a number that grows when other principals come into force; constant without an
  // auth_file. Reads the file again when it has changed.
  virtual uint64_t Revision() = 0;
};

}  // namespace penstock::control
