// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "control/env/disk.h"
#include "control/sync/mutex.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// Gives gRPC the files of one port at each handshake. gRPC's C++ interface takes them once; its C
// interface takes a callback.
class Fetcher {
 public:
  explicit Fetcher(std::shared_ptr<TlsFiles> files) : files_(std::move(files)) {}

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* fetcher, grpc_ssl_server_certificate_config** config) {
    return static_cast<Fetcher*>(fetcher)->Fetch(config);
  }

 private:
  grpc_ssl_certificate_config_reload_status Fetch(grpc_ssl_server_certificate_config** config) {
    MutexLock lock(mu_);
    Pem latest = files_->Latest();
    if (served_ == latest) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {latest.key.c_str(), latest.certificate.c_str()};
    *config = grpc_ssl_server_certificate_config_create(
        latest.ca.empty() ? nullptr : latest.ca.c_str(), &pair, 1);
    served_ = std::move(latest);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const std::shared_ptr<TlsFiles> files_;
  Mutex mu_;
  std::optional<Pem> served_ GUARDED_BY(mu_);  // the content that gRPC has; nullopt: none yet
};

class ReloadingServerCredentials final : public grpc::ServerCredentials {
 public:
  ReloadingServerCredentials(std::shared_ptr<TlsFiles> files,
                             grpc_ssl_client_certificate_request_type of_clients)
      : files_(std::move(files)), of_clients_(of_clients) {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    auto* const fetcher = new Fetcher(files_);
    grpc_server_credentials* const credentials = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(of_clients_,
                                                                        &Fetcher::Fetch, fetcher));
    // A server may outlive this object. gRPC calls no `process` here, and calls `destroy` when
    // nothing uses the credentials any more.
    grpc_server_credentials_set_auth_metadata_processor(
        credentials, {.process = nullptr,
                      .destroy = [](void* unused) { delete static_cast<Fetcher*>(unused); },
                      .state = fetcher});
    const int port = grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}  // not used

  const std::shared_ptr<TlsFiles> files_;
  const grpc_ssl_client_certificate_request_type of_clients_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ServerCredentials(
    const TlsConfig& tls, ClientCertificates of_clients, std::shared_ptr<EventLog> events) {
  if (tls.mutual && (tls.ca.empty() || tls.certificate.empty())) {
    return absl::InvalidArgumentError(
        "tls_mutual needs tls_ca, the authorities whose certificates are accepted, and "
        "tls_certificate with tls_key, the server's own certificate and key");
  }
  if (tls.certificate.empty() && tls.key.empty()) {
    if (tls.ca.empty()) return grpc::InsecureServerCredentials();
    return absl::InvalidArgumentError(
        "tls_ca is given to a server that has no certificate, so it would serve in plain text; "
        "give tls_certificate and tls_key too, or leave out tls_ca");
  }
  ASSIGN_OR_RETURN(std::shared_ptr<TlsFiles> files, TlsFiles::Open(tls, std::move(events)));
  const bool asked = of_clients == ClientCertificates::kAsked && !tls.ca.empty();
  return std::make_shared<ReloadingServerCredentials>(
      std::move(files), tls.mutual ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                        : asked    ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
                                   : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(Pem pem) {
  return grpc::SslCredentials({.pem_root_certs = std::move(pem.ca),
                               .pem_private_key = std::move(pem.key),
                               .pem_cert_chain = std::move(pem.certificate)});
}

absl::StatusOr<std::string> ReadToken(const std::string& token_file) {
  absl::StatusOr<std::string> text = LocalDisk().Read(token_file);
  if (!text.ok()) {
    return absl::NotFoundError(absl::StrCat("token_file: ", text.status().message()));
  }
  std::string token(absl::StripAsciiWhitespace(*text));
  const bool printable = std::all_of(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (!token.empty() && printable) return token;
  return absl::InvalidArgumentError(
      absl::StrCat("token_file: '", token_file,
                   "' must contain one token of printable ASCII without white space; `penstock "
                   "auth token FILE` makes one"));
}

}  // namespace penstock::control
