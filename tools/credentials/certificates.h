// SPDX-License-Identifier: Apache-2.0
// X.509 certificates of a cluster: an authority, and certificates that it signs. Keys are on the
// curve P-256. Keys and certificates are texts in PEM. All functions may be called by any thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::tools {

inline constexpr int kAuthorityDays = 3650;
// The maximum for a certificate that a new authority signs, which must not outlive the authority.
inline constexpr int kMaxDays = kAuthorityDays - 1;

struct Authority {
  std::string key;
  std::string certificate;
};

// The content of a certificate that an authority signs.
struct CertificateTerms {
  std::string name;                // the common name of the subject
  std::vector<std::string> hosts;  // DNS names and IP addresses at which it may be used
  int days = 0;                    // for which it is valid, from now
};

// OK for a DNS name (also "*.example.com") or an IP address. InvalidArgument, with the host, for
// any other text, such as "host:port".
absl::Status CheckHost(const std::string& host);

// Returns a new private key.
absl::StatusOr<std::string> MakeKey();
// Returns an authority that is valid for kAuthorityDays.
absl::StatusOr<Authority> MakeAuthority();

// Returns a certificate for `key`, for servers and clients. REQUIRES: CheckHost() of each host.
// InvalidArgument if the certificate would outlive the authority, or if a text is not a key or
// certificate in PEM.
absl::StatusOr<std::string> Certify(const Authority& authority, const std::string& key,
                                    const CertificateTerms& terms);

// Returns the hosts of a certificate, in its order. InvalidArgument if it is not one in PEM.
absl::StatusOr<std::vector<std::string>> HostsOf(const std::string& certificate);

}  // namespace penstock::tools
