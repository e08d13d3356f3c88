// SPDX-License-Identifier: Apache-2.0
#include "tests/control/env/remote/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "penstock/check.h"

namespace penstock {
namespace {

// Reads the next request; returns false when the peer has gone.
bool ReadQuestion(int fd, HttpQuestion& question) {
  std::string head;
  char c;
  while (head.size() < 4 || head.compare(head.size() - 4, 4, "\r\n\r\n") != 0) {
    if (recv(fd, &c, 1, 0) != 1) return false;
    head += c;
  }
  std::vector<std::string> lines = absl::StrSplit(head, "\r\n");
  question.target = std::vector<std::string>(absl::StrSplit(lines[0], ' '))[1];
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    if (colon == std::string::npos) continue;
    question.headers[absl::AsciiStrToLower(lines[i].substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(lines[i].substr(colon + 1)));
  }
  return true;
}

bool SendAll(int fd, const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t now = send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += static_cast<size_t>(now);
  }
  return true;
}

}  // namespace

HttpAnswer Serve(const std::string& file, const HttpQuestion& question,
                 std::vector<std::string> headers) {
  HttpAnswer answer{.headers = std::move(headers)};
  long long first = 0, last = 0;
  if (std::sscanf(question.header("range").c_str(), "bytes=%lld-%lld", &first, &last) != 2) {
    answer.body = file;
    return answer;
  }
  const auto size = static_cast<long long>(file.size());
  if (first >= size) {
    answer.code = 416;
    answer.reason = "Range Not Satisfiable";
    answer.headers.push_back(absl::StrCat("Content-Range: bytes */", size));
    return answer;
  }
  last = std::min(last, size - 1);
  answer.code = 206;
  answer.reason = "Partial Content";
  answer.headers.push_back(absl::StrCat("Content-Range: bytes ", first, "-", last, "/", size));
  answer.body = file.substr(first, last - first + 1);
  return answer;
}

ScriptedServer::ScriptedServer(Script script) : script_(std::move(script)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  PENSTOCK_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
  PENSTOCK_CHECK(listen(listener_, 64) == 0);
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Accept(); });
}

ScriptedServer::~ScriptedServer() {
  {
    std::lock_guard lock(mu_);
    stopping_ = true;
    for (const int fd : open_) shutdown(fd, SHUT_RDWR);
  }
  shutdown(listener_, SHUT_RDWR);
  thread_.join();
  for (std::thread& conversation : conversations_) conversation.join();
  for (const int fd : open_) close(fd);
  close(listener_);
}

std::string ScriptedServer::Url(const std::string& target) const {
  return absl::StrCat("http://127.0.0.1:", port_, target);
}

std::vector<HttpQuestion> ScriptedServer::asked() const {
  std::lock_guard lock(mu_);
  return asked_;
}

void ScriptedServer::Accept() {
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    ++connections_;
    std::lock_guard lock(mu_);
    open_.push_back(fd);
    if (stopping_) return;
    conversations_.emplace_back([this, fd] { Converse(fd); });
  }
}

void ScriptedServer::Converse(int fd) {
  for (HttpQuestion question; ReadQuestion(fd, question); question = {}) {
    {
      std::lock_guard lock(mu_);
      question.number = static_cast<int>(asked_.size());
      asked_.push_back(question);
    }
    const HttpAnswer answer = script_(question);
    std::string head = absl::StrCat("HTTP/1.1 ", answer.code, " ", answer.reason,
                                    "\r\nContent-Length: ", answer.body.size(), "\r\n");
    for (const std::string& header : answer.headers) absl::StrAppend(&head, header, "\r\n");
    if (!SendAll(fd, absl::StrCat(head, "\r\n", answer.body.substr(0, answer.cut_after)))) return;
    if (answer.cut_after >= answer.body.size() && !answer.stall) continue;
    char nothing;
    if (answer.stall) recv(fd, &nothing, 1, 0);  // until the peer goes
    shutdown(fd, SHUT_RDWR);
    return;
  }
}

}  // namespace penstock
