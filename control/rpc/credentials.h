// SPDX-License-Identifier: Apache-2.0
// TLS, or none, as gRPC takes it. For .cc files of gRPC clients and servers only.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "penstock/tls.h"

namespace penstock::control {

// All of them: NotFound for a file that cannot be read; InvalidArgument for one that is not
// what it should be, for a key that is not the certificate's, and for one without the other.

// Plain where `tls` has no certificate. InvalidArgument for a server that asks for
// certificates and has none, or no `ca`.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ServerCredentials(const TlsConfig& tls);
// Of a client that speaks TLS.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ChannelCredentials(const TlsConfig& tls);

}  // namespace penstock::control
