// SPDX-License-Identifier: Apache-2.0
// A small HTTP server for pages: /metrics for Prometheus, and other pages about the process. A page
// whose text begins like HTML is served as HTML. GET only, one request per connection.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace penstock {

class PageServer {
 public:
  // Makes a page when it is requested, on the server's thread.
  using Page = std::function<std::string()>;

  // Serves `pages` (the key is the path) on `host` and `port` (0: any free port) until the server
  // is destroyed. If `token` is not empty, a request gets a page only if it presents the token, as
  // a Bearer token or as the password of Basic authentication with any user name. Unavailable if
  // the port is in use.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(const std::string& host, int port,
                                                           std::map<std::string, Page> pages,
                                                           std::string token = "");
  virtual ~PageServer() = default;
  virtual int port() const = 0;
};

}  // namespace penstock
