// SPDX-License-Identifier: Apache-2.0
// An HTTP server on loopback that gives the answers of a test: also wrong, late or incomplete ones.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace penstock {

struct HttpQuestion {
  std::string target;                          // "/path?query"
  std::map<std::string, std::string> headers;  // names in lower case
  int number = 0;                              // of the request, from 0

  std::string header(const std::string& name) const {
    auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

struct HttpAnswer {
  int code = 200;
  std::string reason = "OK";
  std::vector<std::string> headers;  // "ETag: \"1\""; Content-Length is added
  std::string body;
  // Closes the connection after this many bytes of the body.
  size_t cut_after = SIZE_MAX;
  // Keeps the connection open after `cut_after` bytes, and sends nothing more.
  bool stall = false;
};

// Returns the requested bytes of `file` as a correct server does.
HttpAnswer Serve(const std::string& file, const HttpQuestion& question,
                 std::vector<std::string> headers = {});

class ScriptedServer {
 public:
  using Script = std::function<HttpAnswer(const HttpQuestion&)>;  // called by any thread

  explicit ScriptedServer(Script script);
  ~ScriptedServer();

  std::string Url(const std::string& target) const;  // "http://127.0.0.1:4711/target"
  std::vector<HttpQuestion> asked() const;           // so far
  int connections() const { return connections_; }

 private:
  void Accept();
  void Converse(int fd);

  const Script script_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  std::thread thread_;

  mutable std::mutex mu_;
  std::vector<HttpQuestion> asked_;  // guarded by mu_, as all below
  std::vector<int> open_;
  std::vector<std::thread> conversations_;
  bool stopping_ = false;
};

}  // namespace penstock
