// SPDX-License-Identifier: Apache-2.0
// A small HTTP server for pages: /metrics for Prometheus, and other pages about the process. A page
// whose text begins like HTML is served as HTML. GET only, one request per connection.
//
// One thread serves all connections, and each page has a thread that makes it. So neither a slow
// client nor a slow page delays the answer to another request for a different page.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace penstock {

// Bounds on the clients of a PageServer, none of which is trusted.
struct PageLimits {
  size_t connections = 64;          // above this, the oldest connection is closed
  size_t request_bytes = 16 << 10;  // of the request line and the headers; no body is read
  std::chrono::milliseconds patience = std::chrono::seconds(10);  // for the whole request, and
                                                                  // again for the whole answer
};

class PageServer {
 public:
  // Makes a page when it is requested, on the page's thread. Requests that arrive while the page is
  // being made wait for the next text, and all get the same one.
  using Page = std::function<std::string()>;
  // Makes a page for the viewer that Admit named. Only requests of the same viewer share a text.
  using PageFor = std::function<std::string(const std::string& viewer)>;
  // Returns the viewer for whom pages are made. `token`: the Bearer token, or the password of Basic
  // authentication with any user name; empty: none. `address`: the client's, for events. The answer
  // to Unauthenticated is 401, and to any other error 403, with the error's message. Runs on the
  // server's thread, so it must be quick.
  using Admit = std::function<absl::StatusOr<std::string>(const std::string& token,
                                                          const std::string& address)>;

  // Serves `pages` (the key is the path) on `host` and `port` (0: any free port) until the server
  // is destroyed. If `token` is not empty, a request gets a page only if it presents the token.
  // Unavailable if the port is in use.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(const std::string& host, int port,
                                                           std::map<std::string, Page> pages,
                                                           std::string token = "",
                                                           PageLimits limits = {});
  // As above, but `admit` decides who gets the pages.
  static absl::StatusOr<std::unique_ptr<PageServer>> StartFor(const std::string& host, int port,
                                                              std::map<std::string, PageFor> pages,
                                                              Admit admit, PageLimits limits = {});
  // Waits for a page that is being made, but for no client.
  virtual ~PageServer() = default;
  virtual int port() const = 0;
};

// Returns an Admit for one token, with one viewer. If the token is empty, everybody is admitted, or
// nobody if a token is `required`.
PageServer::Admit AdmitToken(std::string token, bool required = false);

}  // namespace penstock
