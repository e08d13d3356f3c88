// SPDX-License-Identifier: Apache-2.0
// TLS of the control plane and of grpc links: files in PEM.
#pragma once

#include <string>

namespace penstock {

// One process's own side. They are read when a server starts, and when a connection
// to one is prepared.
struct TlsConfig {
  // Who must have signed the other side's certificate. Empty: what the system trusts.
  std::string ca;
  // Its own certificate with its chain, and the key. A server with a certificate speaks TLS
  // only; a client shows it to servers that ask.
  std::string certificate;
  std::string key;
  // Of servers: nobody is served without a certificate that `ca` has signed (mutual TLS).
  bool mutual = false;

  bool empty() const { return ca.empty() && certificate.empty() && key.empty() && !mutual; }
};

}  // namespace penstock
