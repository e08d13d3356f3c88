// SPDX-License-Identifier: Apache-2.0
#include "control/env/remote/guard.h"

#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "control/env/allowed_files.h"
#include "control/env/remote/name.h"
#include "control/env/remote/public_address.h"
#include "control/settings/settings.h"

namespace penstock::remote {

absl::Status NotAllowed(const std::string& name) {
  return absl::PermissionDeniedError(
      absl::StrCat(Shown(name), " is not allowed on this worker: ", kAllowItsFolder));
}

namespace {

// Returns whether libcurl would use a proxy, at least for some hosts.
bool HasProxy() {
  const Environment environment = ProcessEnvironment();
  const auto value = [&](const char* variable) { return environment(variable).value_or(""); };
  if (value("no_proxy") == "*" || value("NO_PROXY") == "*") return false;
  for (const char* each : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
    if (!value(each).empty()) return true;
  }
  return false;
}

}  // namespace

void Guard::Watch(CURL* easy) {
  easy_ = easy;
  denied_ = std::nullopt;
  if (rules_ == nullptr) return;
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, &OnSocket);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, this);
  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, &OnRequest);
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, this);
  proxied_ = rules_->Judge(Url()) == UrlRules::Hosts::kAny && HasProxy();
  if (!proxied_) curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
}

// libcurl calls this before it connects.
curl_socket_t Guard::OnSocket(void* self, curlsocktype, curl_sockaddr* address) {
  if (!static_cast<Guard*>(self)->Allows(IsPublicAddress(address->addr))) return CURL_SOCKET_BAD;
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// libcurl calls this when a connection is ready, also one that it opened for an earlier request.
int Guard::OnRequest(void* self, char* peer, char*, int, int) {
  return static_cast<Guard*>(self)->Allows(IsPublicAddress(peer)) ? CURL_PREREQFUNC_OK
                                                                  : CURL_PREREQFUNC_ABORT;
}

std::string Guard::Url() const {
  char* text = nullptr;
  curl_easy_getinfo(easy_, CURLINFO_EFFECTIVE_URL, &text);
  return text == nullptr ? "" : text;
}

bool Guard::Allows(bool is_public) {
  const std::string url = Url();
  const UrlRules::Hosts hosts = rules_->Judge(url);
  if (hosts == UrlRules::Hosts::kAny) return true;
  if (hosts == UrlRules::Hosts::kPublic && is_public && !proxied_) return true;
  denied_ = absl::PermissionDeniedError(
      hosts == UrlRules::Hosts::kNone
          ? absl::StrCat(name_, " leads to ", Shown(url),
                         ", which is not allowed on this worker: ", kAllowItsFolder)
      : proxied_
          ? absl::StrCat(name_, " is redirected to ", Shown(url),
                         ", which is not allowed on this worker: a proxy hides whether its host ",
                         "is in a private network; add the URL with this host to --files-allow "
                         "(files_allow)")
          : absl::StrCat(name_, " is not allowed on this worker: its host ",
                         "is in a private network; add the URL with this host to --files-allow "
                         "(files_allow)"));
  return false;
}

}  // namespace penstock::remote
