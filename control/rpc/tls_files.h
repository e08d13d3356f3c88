// SPDX-License-Identifier: Apache-2.0
// The TLS files of a process, read again for each new connection. So a certificate can be replaced
// while the process runs: connections that exist keep the old one, new ones get the new one.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "control/observe/event_log.h"
#include "control/sync/mutex.h"
#include "penstock/tls.h"

namespace penstock::control {

// The content of the files, in PEM; empty for a file that is not configured.
struct Pem {
  std::string ca;
  std::string certificate;
  std::string key;
  friend bool operator==(const Pem&, const Pem&) = default;
};

// Any thread may call any method.
class TlsFiles {
 public:
  // Reads and checks the files. NotFound for a file that cannot be read. InvalidArgument for a file
  // with unexpected content, for a key that does not match the certificate or is too weak for
  // OpenSSL's security level, and if only one of key and certificate is given. `events` gets an
  // event when the files have changed.
  static absl::StatusOr<std::shared_ptr<TlsFiles>> Open(
      const TlsConfig& tls, std::shared_ptr<EventLog> events = StderrEventLog());

  // Reads the files again and returns their content. If a file is missing or not valid, returns the
  // last valid content of all files, and writes the event `certificate_refused` once per reason.
  // Between the replacement of a certificate and of its key the files do not match, and the last
  // valid pair is used.
  Pem Latest();

 private:
  TlsFiles(const TlsConfig& tls, Pem pem, std::shared_ptr<EventLog> events)
      : tls_(tls), events_(std::move(events)), valid_(std::move(pem)) {}

  const TlsConfig tls_;
  const std::shared_ptr<EventLog> events_;
  Mutex mu_;
  Pem valid_ GUARDED_BY(mu_);
  std::string refused_ GUARDED_BY(mu_);  // the last reason that an event has named; empty: none
};

}  // namespace penstock::control
