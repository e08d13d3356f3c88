// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/credentials.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "absl/strings/str_cat.h"
#include "control/env/disk.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

absl::StatusOr<std::string> ReadFile(const char* setting, const std::string& path) {
  if (path.empty()) return std::string();
  absl::StatusOr<std::string> text = LocalDisk().Read(path);
  if (text.ok()) return text;
  return absl::NotFoundError(absl::StrCat(setting, ": ", text.status().message()));
}

absl::Status Refused(const char* setting, const std::string& path, const char* what) {
  char why[256] = "unknown reason";
  if (const unsigned long error = ERR_peek_last_error(); error != 0) {
    ERR_error_string_n(error, why, sizeof why);
  }
  ERR_clear_error();
  return absl::InvalidArgumentError(
      absl::StrCat(setting, ": '", path, "' is not ", what, " in PEM: ", why));
}

// Checks the files here, because gRPC would report only that it cannot serve or cannot connect.
absl::Status CheckFiles(const TlsConfig& tls) {
  if (tls.certificate.empty() != tls.key.empty()) {
    return absl::InvalidArgumentError(
        "tls_certificate and tls_key belong together; only one of them is given");
  }
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_method()),
                                                             SSL_CTX_free);
  ERR_clear_error();
  if (!tls.ca.empty() &&
      SSL_CTX_load_verify_locations(context.get(), tls.ca.c_str(), nullptr) != 1) {
    return Refused("tls_ca", tls.ca, "a certificate");
  }
  if (tls.certificate.empty()) return absl::OkStatus();
  if (SSL_CTX_use_certificate_chain_file(context.get(), tls.certificate.c_str()) != 1) {
    return Refused("tls_certificate", tls.certificate, "a certificate");
  }
  // OpenSSL also compares the key with the certificate here.
  if (SSL_CTX_use_PrivateKey_file(context.get(), tls.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return Refused("tls_key", tls.key,
                   absl::StrCat("the key of the certificate '", tls.certificate, "'").c_str());
  }
  return absl::OkStatus();
}

struct Pem {
  std::string ca;
  std::string certificate;
  std::string key;
};

absl::StatusOr<Pem> Read(const TlsConfig& tls) {
  Pem pem;
  ASSIGN_OR_RETURN(pem.ca, ReadFile("tls_ca", tls.ca));
  ASSIGN_OR_RETURN(pem.certificate, ReadFile("tls_certificate", tls.certificate));
  ASSIGN_OR_RETURN(pem.key, ReadFile("tls_key", tls.key));
  RETURN_IF_ERROR(CheckFiles(tls));
  return pem;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ServerCredentials(const TlsConfig& tls) {
  if (tls.mutual && (tls.ca.empty() || tls.certificate.empty())) {
    return absl::InvalidArgumentError(
        "tls_mutual needs tls_ca, the authorities whose certificates are accepted, and "
        "tls_certificate with tls_key, the server's own certificate and key");
  }
  if (tls.certificate.empty() && tls.key.empty()) return grpc::InsecureServerCredentials();
  ASSIGN_OR_RETURN(Pem pem, Read(tls));
  grpc::SslServerCredentialsOptions options(
      tls.mutual ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                 : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  options.pem_root_certs = std::move(pem.ca);
  options.pem_key_cert_pairs.push_back({std::move(pem.key), std::move(pem.certificate)});
  return grpc::SslServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ChannelCredentials(const TlsConfig& tls) {
  ASSIGN_OR_RETURN(Pem pem, Read(tls));
  return grpc::SslCredentials({.pem_root_certs = std::move(pem.ca),
                               .pem_private_key = std::move(pem.key),
                               .pem_cert_chain = std::move(pem.certificate)});
}

}  // namespace penstock::control
