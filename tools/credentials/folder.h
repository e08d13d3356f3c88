// SPDX-License-Identifier: Apache-2.0
// The folder of a cluster's credentials, which `penstock credentials` makes and changes:
// certificates, tokens, the dispatcher's auth_file, and a settings file for each kind of process.
// docs/security.md lists the files. New files can be read by this user only. A
// file that replaces another keeps the owner and the mode of that file.
//
// Errors name the file. Two commands that change one folder must not run at the same time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/protocol/principal.h"

namespace penstock::tools {

// The common names of the certificates, and the names of the files that belong to them.
inline constexpr char kDispatcher[] = "dispatcher";
inline constexpr char kWorker[] = "worker";
inline constexpr char kOperator[] = "operator";

// The hosts of a cluster, as clients dial them.
struct ClusterHosts {
  std::vector<std::string> all;         // of the dispatcher and of the workers
  std::vector<std::string> dispatcher;  // names of the dispatcher's host; empty: the first of `all`

  // REQUIRES: there are hosts. Clients dial this name of the dispatcher's.
  const std::string& main() const { return dispatcher.empty() ? all.front() : dispatcher.front(); }
};
// Hosts by the name of the certificate that is for them.
using HostsByName = std::map<std::string, std::vector<std::string>>;

struct ClusterTerms {
  ClusterHosts hosts;
  std::vector<std::string> trainers;  // names of principals
  int days = 0;                       // for which certificates are valid
};

// Makes the folder, and the missing folders above it. The dispatcher's certificate is for the
// dispatcher's hosts, the workers' for all others, so that a worker's key cannot stand for the
// dispatcher; both are for localhost too. AlreadyExists if there is anything at this path.
// InvalidArgument for a host or a name that cannot be used; nothing is written then.
absl::Status MakeCredentials(const std::string& folder, const ClusterTerms& terms);

// Adds a principal with a new token to the auth_file, and writes the file of the token, and for a
// trainer its settings file. AlreadyExists if the principal or one of these files exists.
absl::Status AddPrincipal(const std::string& folder, const control::Principal& principal);

// Replaces the certificates of the dispatcher and of workers, with the same authority and keys.
// Without hosts, a new certificate is for the hosts of the old one. Returns the hosts.
absl::StatusOr<HostsByName> RenewCertificates(const std::string& folder, const ClusterHosts& hosts,
                                              int days);

}  // namespace penstock::tools
