// SPDX-License-Identifier: Apache-2.0
#include "control/observe/page_server.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "control/sync/clock.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Clock = SteadyClock;

// The time that a client may take to send its request and to receive the answer. It is limited so
// that a client does not keep others waiting.
constexpr std::chrono::seconds kPatience(2);
// The pause after accept failed.
constexpr std::chrono::milliseconds kPause(100);
constexpr size_t kMaxRequestBytes = 16 << 10;

absl::StatusOr<int> Listen(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (int error = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found)) {
    return absl::InvalidArgumentError(absl::StrCat("host \"", host, "\": ", gai_strerror(error)));
  }
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool listening =
      bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0;
  const int error = errno;
  freeaddrinfo(found);
  if (listening) return fd;
  close(fd);
  return absl::UnavailableError(
      absl::StrCat("cannot serve pages on ", host, ":", port, ": ", std::strerror(error)));
}

// Returns the token in a request: a Bearer token, or the password of Basic authentication.
std::string ShownToken(const std::string& request) {
  for (absl::string_view line : absl::StrSplit(request, "\r\n")) {
    const std::pair<absl::string_view, absl::string_view> header =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (!absl::EqualsIgnoreCase(header.first, "authorization")) continue;
    absl::string_view value = absl::StripAsciiWhitespace(header.second);
    if (absl::ConsumePrefix(&value, "Bearer ")) return std::string(value);
    std::string name_and_password;
    if (absl::ConsumePrefix(&value, "Basic ") && absl::Base64Unescape(value, &name_and_password)) {
      return name_and_password.substr(
          std::min(name_and_password.find(':'), name_and_password.size() - 1) + 1);
    }
  }
  return "";
}

// Compares in a time that does not depend on the number of matching characters.
bool SameSecret(const std::string& shown, const std::string& secret) {
  unsigned char differ = shown.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < secret.size(); ++i) {
    const char other = i < shown.size() ? shown[i] : '\0';
    differ |= static_cast<unsigned char>(secret[i] ^ other);
  }
  return differ == 0;
}

class Server final : public PageServer {
 public:
  Server(int listener, std::map<std::string, Page> pages, std::string token)
      : listener_(listener),
        stop_(eventfd(0, EFD_CLOEXEC)),
        pages_(std::move(pages)),
        token_(std::move(token)) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    char port[NI_MAXSERV] = "0";
    getnameinfo(reinterpret_cast<sockaddr*>(&address), size, nullptr, 0, port, sizeof port,
                NI_NUMERICSERV);
    port_ = std::atoi(port);
  }
  ~Server() override {
    eventfd_write(stop_, 1);
    if (thread_.joinable()) thread_.join();
    close(listener_);
    close(stop_);
  }
  absl::Status Begin() {
    ASSIGN_OR_RETURN(thread_,
                     StartThread(absl::StrCat("the pages at port ", port_), [this] { Run(); }));
    return absl::OkStatus();
  }
  int port() const override { return port_; }

 private:
  void Run() {
    while (true) {
      pollfd waits[] = {{listener_, POLLIN, 0}, {stop_, POLLIN, 0}};
      if (poll(waits, 2, -1) < 0 && errno != EINTR) return;
      if (waits[1].revents != 0) return;
      if (waits[0].revents == 0) continue;
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) {  // perhaps no descriptor is free: waits until one is closed
        if (errno != EINTR && errno != ECONNABORTED) Await(-1, 0, Clock::now() + kPause);
        continue;
      }
      Serve(fd);
      close(fd);
    }
  }

  // Waits until `fd` is ready. Returns false after `deadline`, or when the server stops.
  bool Await(int fd, short events, Clock::time_point deadline) const {
    pollfd waits[] = {{fd, events, 0}, {stop_, POLLIN, 0}};
    while (true) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) return false;
      const int ready = poll(waits, 2, static_cast<int>(left));
      if (ready < 0 && errno == EINTR) continue;
      return ready > 0 && waits[1].revents == 0;
    }
  }

  // Serves one client after another. Each client gets at most kPatience, no matter how slowly it
  // reads and writes.
  void Serve(int fd) {
    const Clock::time_point deadline = Clock::now() + kPatience;
    std::string request;
    char piece[1024];
    while (request.find("\r\n\r\n") == std::string::npos && request.size() < kMaxRequestBytes) {
      if (!Await(fd, POLLIN, deadline)) return;
      const ssize_t got = recv(fd, piece, sizeof piece, 0);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
      request.append(piece, static_cast<size_t>(std::max<ssize_t>(got, 0)));
    }
    std::string answer = Answer(request);
    std::string_view left = answer;
    while (!left.empty()) {
      if (!Await(fd, POLLOUT, deadline)) return;
      const ssize_t sent = send(fd, left.data(), left.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return;
      left.remove_prefix(static_cast<size_t>(std::max<ssize_t>(sent, 0)));
    }
  }

  std::string Answer(const std::string& request) const {
    if (!token_.empty() && !SameSecret(ShownToken(request), token_)) {
      return Http("401 Unauthorized", "the token is missing or differs from metrics_token\n",
                  "WWW-Authenticate: Basic realm=\"penstock\"\r\n");
    }
    const size_t end = request.find(' ', 4);
    if (request.rfind("GET ", 0) != 0 || end == std::string::npos) {
      return Http("405 Method Not Allowed", "only GET is supported\n");
    }
    auto page = pages_.find(request.substr(4, end - 4));
    if (page != pages_.end()) return Http("200 OK", page->second());
    std::string known;
    for (const auto& [path, unused] : pages_) absl::StrAppend(&known, path, "\n");
    return Http("404 Not Found", absl::StrCat("the pages are:\n", known));
  }

  static std::string Http(const char* status, const std::string& body, const char* header = "") {
    const char* type = body.starts_with("<!DOCTYPE html>") ? "text/html; charset=utf-8"
                                                           : "text/plain; version=0.0.4";
    return absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Type: ", type, "\r\n", header,
                        "Content-Length: ", body.size(), "\r\nConnection: close\r\n\r\n", body);
  }

  const int listener_;
  const int stop_;
  const std::map<std::string, Page> pages_;
  const std::string token_;
  int port_ = 0;
  Thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(const std::string& host, int port,
                                                              std::map<std::string, Page> pages,
                                                              std::string token) {
  ASSIGN_OR_RETURN(int listener, Listen(host, port));
  auto server = std::make_unique<Server>(listener, std::move(pages), std::move(token));
  RETURN_IF_ERROR(server->Begin());
  return server;
}

}  // namespace penstock
