// SPDX-License-Identifier: Apache-2.0
// Boost.Beast reads requests and writes answers. Its deadline covers a whole request, no matter in
// how many pieces it arrives. No other file includes Boost.
#include "control/observe/page_server.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <cstring>
#include <list>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "control/observe/page_maker.h"
#include "control/observe/refused.h"
#include "control/observe/secret.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Error = boost::system::error_code;
using Text = PageMaker::Text;

// The pause after a connection could not be accepted, perhaps because no descriptor is free.
constexpr std::chrono::milliseconds kPause(100);
// The pause while a further connection would take the place of another one. To accept the
// connections of a flood one by one costs much more than to accept them together.
constexpr std::chrono::milliseconds kPauseIfFull(20);
// How many connections are accepted before the existing ones are served, so that a request that has
// arrived is read before its connection could be closed as the oldest.
constexpr int kAcceptsPerTurn = 16;

struct ListeningSocket {
  int fd;
  tcp protocol;
};

absl::StatusOr<ListeningSocket> Listen(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (int error = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found)) {
    return absl::InvalidArgumentError(absl::StrCat("host \"", host, "\": ", gai_strerror(error)));
  }
  const tcp protocol = found->ai_family == AF_INET6 ? tcp::v6() : tcp::v4();
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool listening =
      bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0;
  const int error = errno;
  freeaddrinfo(found);
  if (listening) return ListeningSocket{fd, protocol};
  close(fd);
  return absl::UnavailableError(
      absl::StrCat("cannot serve pages on ", host, ":", port, ": ", std::strerror(error)));
}

// Returns the token that `authorization` presents: a Bearer token, or the password of Basic
// authentication.
std::string ShownToken(beast::string_view authorization) {
  absl::string_view value(authorization.data(), authorization.size());
  if (absl::ConsumePrefix(&value, "Bearer ")) return std::string(value);
  std::string name_and_password;
  if (!absl::ConsumePrefix(&value, "Basic ") || !absl::Base64Unescape(value, &name_and_password)) {
    return "";
  }
  const size_t colon = name_and_password.find(':');
  return colon == std::string::npos ? "" : name_and_password.substr(colon + 1);
}

// The pages of a server by path, and who gets them.
class Pages {
 public:
  Pages(std::map<std::string, PageServer::PageFor> pages, PageServer::Admit admit)
      : admit_(std::move(admit)) {
    for (auto& [path, page] : pages) makers_.try_emplace(path, std::move(page));
  }
  absl::Status Start() {
    for (auto& [path, maker] : makers_) RETURN_IF_ERROR(maker.Start(path));
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Admit(const std::string& token, const std::string& address) const {
    return admit_(token, address);
  }
  PageMaker* Find(beast::string_view path) {
    const auto found = makers_.find(std::string(path));
    return found == makers_.end() ? nullptr : &found->second;
  }
  std::string List() const {
    std::string known = "the pages are:\n";
    for (const auto& [path, unused] : makers_) absl::StrAppend(&known, path, "\n");
    return known;
  }

 private:
  const PageServer::Admit admit_;
  std::map<std::string, PageMaker> makers_;
};

// One connection. Except for MakePage's callback, everything runs on the server's thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Pages& pages, const PageLimits& limits,
             std::function<void(Connection&)> over)
      : stream_(std::move(socket)),
        pages_(pages),
        limits_(limits),
        over_(std::move(over)),
        buffer_(limits.request_bytes) {
    parser_.header_limit(static_cast<uint32_t>(limits.request_bytes));
  }

  void Start() {
    stream_.expires_after(limits_.patience);
    http::async_read_header(stream_, buffer_, parser_,
                            [self = shared_from_this()](Error error, size_t) {
                              error ? self->OnUnreadable(error) : self->OnRequest();
                            });
  }
  // Ends the connection; a pending operation fails.
  void Close() { stream_.close(); }

 private:
  void OnUnreadable(const Error& error) {
    if (error == beast::error::timeout) CountRefused(Port::kPages, Refused::kTooLate);
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      CountRefused(Port::kPages, Refused::kTooLong);
      return Answer(http::status::request_header_fields_too_large,
                    absl::StrCat("the request has more than ", limits_.request_bytes, " bytes\n"));
    }
    over_(*this);
  }

  void OnRequest() {
    const auto& request = parser_.get();
    const std::string token = ShownToken(request[http::field::authorization]);
    absl::StatusOr<std::string> viewer = pages_.Admit(token, Address());
    if (!viewer.ok()) {
      CountRefused(Port::kPages, Refused::kUnauthenticated);
      return Answer(absl::IsUnauthenticated(viewer.status()) ? http::status::unauthorized
                                                             : http::status::forbidden,
                    absl::StrCat(viewer.status().message(), "\n"));
    }
    if (request.method() != http::verb::get) {
      return Answer(http::status::method_not_allowed, "only GET is supported\n");
    }
    PageMaker* const maker = pages_.Find(request.target());
    if (maker == nullptr) return Answer(http::status::not_found, pages_.List());
    stream_.expires_never();
    // The page may take long, and this connection may be closed before it is made. The server's
    // thread alone may destroy a connection, so only that thread locks the pointer.
    maker->Request(*std::move(viewer), weak_from_this(),
                   [executor = stream_.get_executor(), asker = weak_from_this()](Text text) {
                     asio::post(executor, [asker, text = std::move(text)] {
                       if (const auto self = asker.lock()) self->AnswerWith(http::status::ok, text);
                     });
                   });
  }

  std::string Address() const {
    Error error;
    const tcp::endpoint peer = stream_.socket().remote_endpoint(error);
    return error ? "" : absl::StrCat(peer.address().to_string(), ":", peer.port());
  }

  void Answer(http::status status, std::string text) {
    AnswerWith(status, std::make_shared<const std::string>(std::move(text)));
  }

  void AnswerWith(http::status status, Text text) {
    text_ = std::move(text);
    answer_.result(status);
    answer_.body() = {text_->data(), text_->size()};
    answer_.set(http::field::content_type, text_->starts_with("<!DOCTYPE html>")
                                               ? "text/html; charset=utf-8"
                                               : "text/plain; version=0.0.4");
    if (status == http::status::unauthorized) {
      answer_.set(http::field::www_authenticate, "Basic realm=\"penstock\"");
    }
    answer_.keep_alive(false);
    answer_.prepare_payload();
    stream_.expires_after(limits_.patience);
    http::async_write(stream_, answer_, [self = shared_from_this()](Error error, size_t) {
      if (error == beast::error::timeout) CountRefused(Port::kPages, Refused::kTooLate);
      self->over_(*self);
    });
  }

  beast::tcp_stream stream_;
  Pages& pages_;
  const PageLimits& limits_;
  const std::function<void(Connection&)> over_;
  beast::flat_buffer buffer_;
  http::request_parser<http::empty_body> parser_;
  Text text_;  // the body of answer_
  http::response<http::span_body<const char>> answer_;
};

class Server final : public PageServer {
 public:
  Server(std::map<std::string, PageFor> pages, Admit admit, PageLimits limits)
      : limits_(limits), pages_(std::move(pages), std::move(admit)) {}
  ~Server() override {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Begin(const std::string& host, int port) {
    ASSIGN_OR_RETURN(const ListeningSocket socket, Listen(host, port));
    acceptor_.assign(socket.protocol, socket.fd);
    protocol_ = socket.protocol;
    port_ = acceptor_.local_endpoint().port();
    RETURN_IF_ERROR(pages_.Start());
    Accept();
    ASSIGN_OR_RETURN(thread_, StartThread(absl::StrCat("the pages at port ", port_),
                                          [this] { context_.run(); }));
    return absl::OkStatus();
  }
  int port() const override { return port_; }

 private:
  void Accept() {
    acceptor_.async_wait(tcp::acceptor::wait_read, [this](Error error) {
      if (!error) AcceptWaiting();
    });
  }

  // Accepts with accept4, because Boost's own accept would leave the descriptor to the programs
  // that this process starts.
  void AcceptWaiting() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      const int fd =
          accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
        CountRefused(Port::kPages, Refused::kTooMany);
        return AcceptAfter(kPause);
      }
      if (fd < 0) return AcceptNext();
      Error error;
      tcp::socket socket(context_);
      socket.assign(protocol_, fd, error);
      if (error) {
        close(fd);
        CountRefused(Port::kPages, Refused::kTooMany);
        return AcceptAfter(kPause);
      }
      Serve(std::move(socket));
    }
    Accept();
  }

  // Waits for a connection, now that none waits.
  void AcceptNext() {
    if (connections_.size() == limits_.connections) return AcceptAfter(kPauseIfFull);
    Accept();
  }

  void AcceptAfter(std::chrono::milliseconds pause) {
    pause_.expires_after(pause);
    pause_.async_wait([this](Error error) {
      if (!error) Accept();
    });
  }

  void Serve(tcp::socket socket) {
    if (connections_.size() == limits_.connections) {
      CountRefused(Port::kPages, Refused::kTooMany);
      connections_.front()->Close();
      connections_.pop_front();
    }
    connections_.push_back(
        std::make_shared<Connection>(std::move(socket), pages_, limits_, [this](Connection& over) {
          connections_.remove_if([&](const auto& one) { return one.get() == &over; });
        }));
    connections_.back()->Start();
  }

  const PageLimits limits_;
  int port_ = 0;
  tcp protocol_ = tcp::v4();
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  asio::steady_timer pause_{context_};
  std::list<std::shared_ptr<Connection>> connections_;  // oldest first; used by thread_ only
  Pages pages_;                                         // its threads post to context_
  Thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(const std::string& host, int port,
                                                              std::map<std::string, Page> pages,
                                                              std::string token,
                                                              PageLimits limits) {
  std::map<std::string, PageFor> for_all;
  for (auto& [path, page] : pages)
    for_all[path] = [page = std::move(page)](const std::string& /*viewer*/) { return page(); };
  return StartFor(host, port, std::move(for_all), AdmitToken(std::move(token)), limits);
}

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::StartFor(
    const std::string& host, int port, std::map<std::string, PageFor> pages, Admit admit,
    PageLimits limits) {
  try {
    auto server = std::make_unique<Server>(std::move(pages), std::move(admit), limits);
    RETURN_IF_ERROR(server->Begin(host, port));
    return server;
  } catch (const boost::system::system_error& error) {  // no descriptor is left
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot serve pages on ", host, ":", port, ": ", error.what()));
  }
}

PageServer::Admit AdmitToken(std::string token, bool required) {
  using Viewer = absl::StatusOr<std::string>;
  return [token = std::move(token), required](const std::string& shown,
                                              const std::string& /*address*/) -> Viewer {
    if (token.empty() && required) {
      return absl::UnauthenticatedError(
          "this server asks its clients who they are, so its pages need a token: set "
          "metrics_token");
    }
    if (token.empty() || SameSecret(shown, token)) return "";
    return absl::UnauthenticatedError("the token is missing or differs from metrics_token");
  };
}

}  // namespace penstock
