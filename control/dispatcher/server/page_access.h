// SPDX-License-Identifier: Apache-2.0
// Who may see the status pages of a dispatcher, and which jobs they show to whom
// (docs/security.md, "Status pages"):
//
// - With metrics_token, its holder sees everything.
// - With auth_file, trainers and operators see with their tokens what GetStatus shows them.
// - With tls_mutual alone there are no other tokens, so without metrics_token nobody sees them.
// - Otherwise, without metrics_token, everybody sees everything.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "control/dispatcher/server/listener.h"
#include "control/protocol/principal.h"
#include "penstock/server.h"

namespace penstock::control {

// Constant. Any thread may call any method.
class PageAccess {
 public:
  explicit PageAccess(const DispatcherConfig& config) : config_(config) {}

  // As PageServer::Admit. `listener` knows the principals. Unauthenticated if the token is missing
  // or not known; PermissionDenied for a worker.
  absl::StatusOr<std::string> Admit(Listener& listener, const std::string& token,
                                    const std::string& address) const;
  // Returns for whom to make the status: the principal that Admit has admitted as `viewer`; nullopt
  // if the viewer sees everything. Unauthenticated if its token has been withdrawn meanwhile.
  absl::StatusOr<Caller> CallerOf(Listener& listener, const std::string& viewer) const;

 private:
  const DispatcherConfig& config_;
};

}  // namespace penstock::control
