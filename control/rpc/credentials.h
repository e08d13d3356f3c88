// SPDX-License-Identifier: Apache-2.0
// Credentials for gRPC, with or without TLS. Only for .cc files of gRPC clients and servers.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "control/observe/event_log.h"
#include "control/rpc/tls_files.h"
#include "penstock/tls.h"

namespace penstock::control {

// Returns insecure credentials if `tls` has no certificate. Otherwise each new connection gets the
// files' latest content (tls_files.h). InvalidArgument if the server requires clients' certificates
// but has no certificate or no `ca`, and if it has a `ca` but no certificate; also the errors of
// TlsFiles::Open().
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ServerCredentials(
    const TlsConfig& tls, std::shared_ptr<EventLog> events = StderrEventLog());
// Returns the TLS credentials of a client. A channel keeps the content with which it was made, also
// for later connections.
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(Pem pem);

}  // namespace penstock::control
