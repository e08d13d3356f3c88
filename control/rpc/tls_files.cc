// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/tls_files.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "control/env/disk.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

template <class T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* object) const { kFree(object); }
};
using Certificate = std::unique_ptr<X509, Freed<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, EVP_PKEY_free>>;
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX, SSL_CTX_free>>;
using Bytes = std::unique_ptr<BIO, Freed<BIO, BIO_free_all>>;

absl::StatusOr<std::string> ReadFile(const char* setting, const std::string& path) {
  if (path.empty()) return std::string();
  absl::StatusOr<std::string> text = LocalDisk().Read(path);
  if (text.ok()) return text;
  return absl::NotFoundError(absl::StrCat(setting, ": ", text.status().message()));
}

absl::Status Refused(const char* setting, const std::string& path, const std::string& what) {
  char why[256] = "unknown reason";
  if (const unsigned long error = ERR_peek_last_error(); error != 0) {
    ERR_error_string_n(error, why, sizeof why);
  }
  ERR_clear_error();
  return absl::InvalidArgumentError(
      absl::StrCat(setting, ": '", path, "' is not ", what, " in PEM: ", why));
}

Bytes OpenBytes(const std::string& text) {
  return Bytes(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Returns the first certificate in `text`; null if there is none, or if a further one is damaged.
Certificate ReadCertificates(const std::string& text) {
  const Bytes bytes = OpenBytes(text);
  Certificate first(PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr));
  if (first == nullptr) return first;
  while (Certificate(PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr)) != nullptr) {
  }
  // OpenSSL reports the end of the text as an error.
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) return nullptr;
  ERR_clear_error();
  return first;
}

// Returns no password, so that a key with a password is refused. OpenSSL would ask the terminal.
int NoPassword(char*, int, int, void*) {
  return -1;
}

// Checks the content here, because gRPC would report only that it cannot serve or cannot connect.
absl::Status Check(const TlsConfig& tls, const Pem& pem) {
  ERR_clear_error();
  if (!tls.ca.empty() && ReadCertificates(pem.ca) == nullptr) {
    return Refused("tls_ca", tls.ca, "a certificate");
  }
  if (tls.certificate.empty()) return absl::OkStatus();
  const Certificate certificate = ReadCertificates(pem.certificate);
  if (certificate == nullptr) return Refused("tls_certificate", tls.certificate, "a certificate");
  const Bytes bytes = OpenBytes(pem.key);
  const Key key(PEM_read_bio_PrivateKey(bytes.get(), nullptr, NoPassword, nullptr));
  if (key == nullptr || X509_check_private_key(certificate.get(), key.get()) != 1) {
    return Refused("tls_key", tls.key,
                   absl::StrCat("the key of the certificate '", tls.certificate, "'"));
  }
  // As gRPC does. OpenSSL refuses keys and signatures below its security level only here.
  const Context context(SSL_CTX_new(TLS_method()));
  if (context == nullptr || SSL_CTX_use_certificate(context.get(), certificate.get()) != 1) {
    return Refused("tls_certificate", tls.certificate,
                   "a certificate that OpenSSL lets a server use");
  }
  if (SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1) {
    return Refused("tls_key", tls.key, "a key that OpenSSL lets a server use");
  }
  return absl::OkStatus();
}

absl::StatusOr<Pem> Read(const TlsConfig& tls) {
  Pem pem;
  ASSIGN_OR_RETURN(pem.ca, ReadFile("tls_ca", tls.ca));
  ASSIGN_OR_RETURN(pem.certificate, ReadFile("tls_certificate", tls.certificate));
  ASSIGN_OR_RETURN(pem.key, ReadFile("tls_key", tls.key));
  return pem;
}

}  // namespace

absl::StatusOr<std::shared_ptr<TlsFiles>> TlsFiles::Open(const TlsConfig& tls,
                                                         std::shared_ptr<EventLog> events) {
  if (tls.certificate.empty() != tls.key.empty()) {
    return absl::InvalidArgumentError(
        "tls_certificate and tls_key belong together; only one of them is given");
  }
  ASSIGN_OR_RETURN(Pem pem, Read(tls));
  RETURN_IF_ERROR(Check(tls, pem));
  return std::shared_ptr<TlsFiles>(new TlsFiles(tls, std::move(pem), std::move(events)));
}

Pem TlsFiles::Latest() {
  MutexLock lock(mu_);  // while reading too, so that an older content never replaces a newer one
  absl::StatusOr<Pem> read = Read(tls_);
  if (read.ok() && *read == valid_) {
    refused_.clear();
    return valid_;
  }
  absl::Status checked = read.status();
  if (checked.ok()) checked = Check(tls_, *read);
  if (checked.ok()) {
    valid_ = *std::move(read);
    refused_.clear();
    events_->Write({"certificate_reloaded", {{"certificate", tls_.certificate}, {"ca", tls_.ca}}});
  } else if (std::string reason(checked.message()); reason != refused_) {
    refused_ = reason;
    events_->Write({"certificate_refused", {{"reason", std::move(reason)}, {"used", "the last"}}});
  }
  return valid_;
}

}  // namespace penstock::control
