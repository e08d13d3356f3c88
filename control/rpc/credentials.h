// SPDX-License-Identifier: Apache-2.0
// Credentials for gRPC, with or without TLS. Only for .cc files of gRPC clients and servers.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "control/observe/event_log.h"
#include "control/rpc/tls_files.h"
#include "penstock/tls.h"

namespace penstock::control {

// kAsked: a server that has a `ca` asks for clients' certificates even if it is not mutual. Then a
// client may connect without a certificate, but not with one that `ca` has not signed.
enum class ClientCertificates { kNotAsked, kAsked };

// Returns insecure credentials if `tls` has no certificate. Otherwise each new connection gets the
// files' latest content (tls_files.h). InvalidArgument if the server requires clients' certificates
// but has no certificate or no `ca`, and if it has a `ca` but no certificate; also the errors of
// TlsFiles::Open().
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ServerCredentials(
    const TlsConfig& tls, ClientCertificates of_clients = ClientCertificates::kNotAsked,
    std::shared_ptr<EventLog> events = StderrEventLog());
// Returns the TLS credentials of a client. A channel keeps the content with which it was made, also
// for later connections.
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(Pem pem);

// The name of the metadata that carries the token, and the text before the token.
inline constexpr char kTokenMetadata[] = "authorization";
inline constexpr char kTokenScheme[] = "Bearer ";
// Returns the token in the file, without white space around it. NotFound if the file cannot be
// read. InvalidArgument if it contains anything but printable ASCII.
absl::StatusOr<std::string> ReadToken(const std::string& token_file);

}  // namespace penstock::control
