// SPDX-License-Identifier: Apache-2.0
// The credentials of a process: TLS for the control plane and for grpc links, with files in PEM,
// and the token that the process presents to the dispatcher.
#pragma once

#include <string>

#pragma GCC visibility push(default)
namespace penstock {

// The TLS files of one process. They are read when a server starts, and when a connection to a
// server is prepared.
struct TlsConfig {
  // The certificates of authorities; one of these must have signed the peer's certificate. Empty:
  // the authorities that the system trusts.
  std::string ca;
  // This process's certificate with its chain, and its key. A server with a certificate speaks only
  // TLS; a client shows its certificate to servers that ask.
  std::string certificate;
  std::string key;
  // For servers: refuse clients without a certificate that `ca` has signed (mutual TLS).
  bool mutual = false;
  // For workers and clients: the file that contains the token by which a dispatcher with an
  // auth_file knows this process. The token is sent only over TLS, or to a dispatcher on loopback.
  std::string token_file;

  // Returns whether TLS is not configured.
  bool empty() const { return ca.empty() && certificate.empty() && key.empty() && !mutual; }
};

}  // namespace penstock
#pragma GCC visibility pop
