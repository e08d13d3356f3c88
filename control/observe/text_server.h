// SPDX-License-Identifier: Apache-2.0
// A small HTTP server for pages: /metrics for Prometheus, and whatever else a process
// shows of itself; what begins as HTML is told to be that. GET only, one request per
// connection.
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
  // destroyed. Who asks without `token` (as Bearer token, or as password of Basic
  // authentication, with any name) gets nothing; an empty one asks for none.
  // Unavailable if the port is in use.
  static absl::StatusOr<std::unique_ptr<TextServer>> Start(const std::string& host, int port,
                                                           std::map<std::string, Page> pages,
                                                           std::string token = "");
  virtual ~TextServer() = default;
  virtual int port() const = 0;
};

}  // namespace penstock
