// SPDX-License-Identifier: Apache-2.0
// A small HTTP server for text pages: /metrics for Prometheus, and whatever else
// a process shows of itself. GET only, one request per connection.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace penstock {

class TextServer {
 public:
  // Makes a page at the moment it is asked for; from the server's thread.
  using Page = std::function<std::string()>;

  // Serves `pages` (by path) on that host and port (0: any free one) until it is
  // destroyed. Unavailable if the port is in use.
  static absl::StatusOr<std::unique_ptr<TextServer>> Start(const std::string& host, int port,
                                                           std::map<std::string, Page> pages);
  virtual ~TextServer() = default;
  virtual int port() const = 0;
};

}  // namespace penstock
