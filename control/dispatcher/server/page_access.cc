// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/page_access.h"

#include "control/observe/page_server.h"
#include "control/observe/secret.h"
#include "control/policy/authorization.h"
#include "control/settings/server_settings.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

constexpr char kSeesEverything[] = "";  // other viewers are named by their tokens

}  // namespace

absl::StatusOr<std::string> PageAccess::Admit(Listener& listener, const std::string& token,
                                              const std::string& address) const {
  const std::string& for_all = config_.metrics_token;
  if (config_.auth_file.empty()) return AdmitToken(for_all, AsksWho(config_))(token, address);
  if (!for_all.empty() && SameSecret(token, for_all)) return kSeesEverything;
  if (token.empty()) {
    return absl::UnauthenticatedError(
        "this page needs the token of a trainer or an operator in the auth_file, as a Bearer token "
        "or as the password of Basic authentication");
  }
  ASSIGN_OR_RETURN(const Caller caller, listener.Identify(token, address));
  RETURN_IF_ERROR(AuthorizeByRole(Action::kGetStatus, caller));
  return token;
}

absl::StatusOr<Caller> PageAccess::CallerOf(Listener& listener, const std::string& viewer) const {
  if (viewer == kSeesEverything) return Caller();
  return listener.Identify(viewer, /*address=*/"");
}

}  // namespace penstock::control
