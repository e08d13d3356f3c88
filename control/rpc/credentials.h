// SPDX-License-Identifier: Apache-2.0
// Credentials for gRPC, with or without TLS. Only for .cc files of gRPC clients and servers.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "penstock/tls.h"

namespace penstock::control {

// Both functions return NotFound for a file that cannot be read. They return InvalidArgument for a
// file with unexpected content, for a key that does not match the certificate, and if only one of
// key and certificate is given.

// Returns insecure credentials if `tls` has no certificate. InvalidArgument if the server requires
// clients' certificates but has no certificate or no `ca`.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ServerCredentials(const TlsConfig& tls);
// Returns the TLS credentials of a client.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ChannelCredentials(const TlsConfig& tls);

}  // namespace penstock::control
