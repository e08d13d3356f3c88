// SPDX-License-Identifier: Apache-2.0
#include "tools/credentials/certificates.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "include/status_macros.h"

namespace penstock::tools {
namespace {

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>>;
using Number = std::unique_ptr<BIGNUM, Free<BN_free>>;
using Memory = std::unique_ptr<BIO, Free<BIO_free>>;

constexpr int kSerialBytes = 16;
constexpr long kClockSkewSeconds = 300;  // by which a machine's clock may be late

// Returns `code` with OpenSSL's last reason.
absl::Status Failed(absl::StatusCode code, std::string_view what) {
  char why[256] = "unknown reason";
  if (const unsigned long error = ERR_peek_last_error(); error != 0) {
    ERR_error_string_n(error, why, sizeof why);
  }
  ERR_clear_error();
  return absl::Status(code, absl::StrCat("cannot ", std::string(what), ": ", why));
}

std::string TextOf(const Memory& memory) {
  char* begin = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &begin);
  return std::string(begin, static_cast<size_t>(size));
}

absl::StatusOr<std::string> ToPem(EVP_PKEY* key) {
  const Memory out(BIO_new(BIO_s_secmem()));
  if (PEM_write_bio_PKCS8PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Failed(absl::StatusCode::kInternal, "write a key");
  }
  return TextOf(out);
}

absl::StatusOr<std::string> ToPem(X509* certificate) {
  const Memory out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(out.get(), certificate) != 1) {
    return Failed(absl::StatusCode::kInternal, "write a certificate");
  }
  return TextOf(out);
}

Memory ReaderOf(const std::string& text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

absl::StatusOr<Key> ReadKey(const std::string& pem) {
  // The empty password keeps OpenSSL from asking for one at the terminal.
  Key key(PEM_read_bio_PrivateKey(ReaderOf(pem).get(), nullptr, nullptr, const_cast<char*>("")));
  if (key == nullptr) return Failed(absl::StatusCode::kInvalidArgument, "read a key in PEM");
  return key;
}

absl::StatusOr<Certificate> ReadCertificate(const std::string& pem) {
  Certificate certificate(PEM_read_bio_X509(ReaderOf(pem).get(), nullptr, nullptr, nullptr));
  if (certificate != nullptr) return certificate;
  return Failed(absl::StatusCode::kInvalidArgument, "read a certificate in PEM");
}

bool IsAddress(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

bool IsLabel(const std::string& label) {
  return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
         std::all_of(label.begin(), label.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_';
         });
}

bool AddExtension(X509* to, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context = {};
  X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(to, extension.get(), -1) == 1;
}

bool SetSerial(X509* certificate) {
  unsigned char bytes[kSerialBytes];
  if (RAND_bytes(bytes, kSerialBytes) != 1) return false;
  bytes[0] = (bytes[0] & 0x7f) | 0x40;  // positive, and never shorter
  const Number number(BN_bin2bn(bytes, kSerialBytes, nullptr));
  return number != nullptr &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

// Returns an unsigned certificate without extensions and issuer.
absl::StatusOr<Certificate> Begin(EVP_PKEY* key, const std::string& name, int days) {
  Certificate made(X509_new());
  X509* const to = made.get();
  if (to != nullptr && X509_set_version(to, X509_VERSION_3) == 1 && SetSerial(to) &&
      X509_gmtime_adj(X509_getm_notBefore(to), -kClockSkewSeconds) != nullptr &&
      X509_time_adj_ex(X509_getm_notAfter(to), days, 0, nullptr) != nullptr &&
      X509_set_pubkey(to, key) == 1 &&
      X509_NAME_add_entry_by_NID(X509_get_subject_name(to), NID_commonName, MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(name.data()),
                                 static_cast<int>(name.size()), -1, 0) == 1) {
    return made;
  }
  return Failed(absl::StatusCode::kInternal, "make a certificate");
}

absl::Status Sign(X509* certificate, X509* issuer, EVP_PKEY* key) {
  if (X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
      AddExtension(certificate, issuer, NID_subject_key_identifier, "hash") &&
      AddExtension(certificate, issuer, NID_authority_key_identifier, "keyid:always") &&
      X509_sign(certificate, key, EVP_sha256()) != 0) {
    return absl::OkStatus();
  }
  return Failed(absl::StatusCode::kInternal, "sign a certificate");
}

std::string AlternativeNames(const std::vector<std::string>& hosts) {
  return absl::StrJoin(hosts, ",", [](std::string* out, const std::string& host) {
    absl::StrAppend(out, IsAddress(host) ? "IP:" : "DNS:", host);
  });
}

}  // namespace

absl::Status CheckHost(const std::string& host) {
  if (IsAddress(host)) return absl::OkStatus();
  std::vector<std::string> labels = absl::StrSplit(host, '.');
  if (labels.size() > 1 && labels.front() == "*") labels.erase(labels.begin());
  const bool number = std::all_of(labels.back().begin(), labels.back().end(),
                                  [](unsigned char c) { return absl::ascii_isdigit(c); });
  if (host.size() <= 253 && std::all_of(labels.begin(), labels.end(), IsLabel) && !number) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", host, "' is neither a host name nor an IP address; give the host alone, ",
                   "without a port or brackets"));
}

absl::StatusOr<std::string> MakeKey() {
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed(absl::StatusCode::kInternal, "make a key");
  return ToPem(key.get());
}

absl::StatusOr<Authority> MakeAuthority() {
  Authority made;
  ASSIGN_OR_RETURN(made.key, MakeKey());
  ASSIGN_OR_RETURN(const Key key, ReadKey(made.key));
  ASSIGN_OR_RETURN(const Certificate itself,
                   Begin(key.get(), "penstock authority", kAuthorityDays));
  X509* const to = itself.get();
  if (!AddExtension(to, to, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(to, to, NID_key_usage, "critical,keyCertSign,cRLSign")) {
    return Failed(absl::StatusCode::kInternal, "make an authority");
  }
  RETURN_IF_ERROR(Sign(to, to, key.get()));
  ASSIGN_OR_RETURN(made.certificate, ToPem(to));
  return made;
}

absl::StatusOr<std::string> Certify(const Authority& authority, const std::string& key,
                                    const CertificateTerms& terms) {
  ASSIGN_OR_RETURN(const Key signer, ReadKey(authority.key));
  ASSIGN_OR_RETURN(const Certificate issuer, ReadCertificate(authority.certificate));
  ASSIGN_OR_RETURN(const Key its, ReadKey(key));
  ASSIGN_OR_RETURN(const Certificate made, Begin(its.get(), terms.name, terms.days));
  X509* const to = made.get();
  if (ASN1_TIME_compare(X509_get0_notAfter(to), X509_get0_notAfter(issuer.get())) > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a certificate for ", terms.days,
                     " days would outlive the authority that signs it; choose fewer days, or make "
                     "new credentials with a new authority"));
  }
  if (!AddExtension(to, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !AddExtension(to, issuer.get(), NID_key_usage, "critical,digitalSignature") ||
      !AddExtension(to, issuer.get(), NID_ext_key_usage, "serverAuth,clientAuth") ||
      !AddExtension(to, issuer.get(), NID_subject_alt_name, AlternativeNames(terms.hosts))) {
    return Failed(absl::StatusCode::kInternal, "make a certificate");
  }
  RETURN_IF_ERROR(Sign(to, issuer.get(), signer.get()));
  return ToPem(to);
}

absl::StatusOr<std::vector<std::string>> HostsOf(const std::string& certificate) {
  ASSIGN_OR_RETURN(const Certificate parsed, ReadCertificate(certificate));
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(parsed.get(), NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> hosts;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int kind = 0;
    const auto* value = static_cast<const ASN1_STRING*>(
        GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &kind));
    const unsigned char* bytes = ASN1_STRING_get0_data(value);
    const int size = ASN1_STRING_length(value);
    if (kind == GEN_DNS) {
      hosts.emplace_back(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    } else if (kind == GEN_IPADD) {
      char text[INET6_ADDRSTRLEN];
      inet_ntop(size == sizeof(in_addr) ? AF_INET : AF_INET6, bytes, text, sizeof text);
      hosts.emplace_back(text);
    }
  }
  return hosts;
}

}  // namespace penstock::tools
