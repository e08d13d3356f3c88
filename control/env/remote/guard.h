// SPDX-License-Identifier: Apache-2.0
// Holds an HTTP request to the rules while it is under way.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "control/env/remote/url_rules.h"

namespace penstock::remote {

// Judges the URL and the peer's address at each connection of a request, including connections that
// are used again, and those of redirects. The address is the one that the socket connects to, so a
// name whose address changes between two look-ups gains nothing. Nothing is sent before the check.
// Used by the client's thread alone.
//
// A proxy hides the server's address. So a try goes through a proxy only if a rule names the host
// of its URL. If a redirect leads such a try to a host that must be public, it is refused.
class Guard {
 public:
  // `rules`: nullptr allows everything. `name` is the file's, for errors.
  Guard(std::shared_ptr<const UrlRules> rules, std::string name)
      : rules_(std::move(rules)), name_(std::move(name)) {}

  // Watches the try for which `easy` has been prepared. This object must outlive the try.
  void Watch(CURL* easy);
  // Returns why a connection was refused in this try: PermissionDenied. nullopt: none was.
  const std::optional<absl::Status>& denied() const { return denied_; }

 private:
  static curl_socket_t OnSocket(void* self, curlsocktype, curl_sockaddr* address);
  static int OnRequest(void* self, char* peer, char*, int, int);
  std::string Url() const;  // of the request at this time
  // Sets denied_ if the request's URL at this time is not allowed at such an address.
  bool Allows(bool is_public);

  const std::shared_ptr<const UrlRules> rules_;
  const std::string name_;
  CURL* easy_ = nullptr;
  bool proxied_ = false;  // the try may go through a proxy
  std::optional<absl::Status> denied_;
};

// Returns the error for a file that may not be read.
absl::Status NotAllowed(const std::string& name);

}  // namespace penstock::remote
