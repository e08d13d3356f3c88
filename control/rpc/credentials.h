// SPDX-License-Identifier: Apache-2.0
// Credentials for gRPC, with or without TLS. For .cc files of gRPC clients and servers only.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "penstock/tls.h"

namespace penstock::control {

// Errors of both: NotFound for a file that cannot be read; InvalidArgument for a file with
// unexpected content, for a key that does not match the certificate, and for a key or certificate
// without the other.

// Returns plain credentials if `tls` has no certificate. InvalidArgument if the server requires
// clients' certificates and has no certificate, or no `ca`.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ServerCredentials(const TlsConfig& tls);
// Returns the credentials of a client that uses TLS.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ChannelCredentials(const TlsConfig& tls);

}  // namespace penstock::control
