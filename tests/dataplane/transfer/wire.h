// SPDX-License-Identifier: Apache-2.0
// A wire between a client and a worker that breaks after a given byte.
#pragma once

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace penstock::transfer {

// Forwards connections to a TCP address of this host. Once the given number of bytes has gone one
// way, it breaks all of them and accepts no more.
class Wire {
 public:
  struct Bounds {
    int64_t to_client = INT64_MAX;
    int64_t to_worker = INT64_MAX;
    bool reset = false;  // break with a reset, not with an end
  };

  Wire(const std::string& target, Bounds bounds) : bounds_(bounds) {
    const size_t colon = target.rfind(':');
    const addrinfo hints{.ai_socktype = SOCK_STREAM};
    EXPECT_EQ(::getaddrinfo(target.substr(0, colon).c_str(), target.c_str() + colon + 1, &hints,
                            &target_),
              0);
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in here{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof here;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&here), length), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&here), &length);
    address_ = absl::StrCat("127.0.0.1:", ntohs(here.sin_port));
    thread_ = std::thread([this] { Run(); });
  }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire() {
    ::eventfd_write(stop_, 1);
    thread_.join();
    ::close(stop_);
    ::freeaddrinfo(target_);
  }

  const std::string& address() const { return address_; }

 private:
  using Pair = std::array<int, 2>;  // sockets: the client's, the worker's

  void Run() {
    while (true) {
      std::vector<pollfd> fds = {{.fd = stop_, .events = POLLIN},
                                 {.fd = listener_, .events = POLLIN}};
      for (const Pair& pair : pairs_) {
        for (int fd : pair) fds.push_back({.fd = fd, .events = POLLIN});
      }
      ::poll(fds.data(), fds.size(), -1);
      if (fds[0].revents != 0) break;
      bool whole = true;
      for (size_t i = 2; i < fds.size() && whole; ++i) {
        if (fds[i].revents != 0) whole = Forward(pairs_[i / 2 - 1], i % 2 == 1);
      }
      if (!whole) break;
      if (fds[1].revents != 0) Accept();
    }
    for (const Pair& pair : pairs_) {
      for (int fd : pair) Break(fd);
    }
    ::close(listener_);
  }

  void Accept() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    for (const addrinfo* at = target_; at != nullptr; at = at->ai_next) {
      const int worker = ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (::connect(worker, at->ai_addr, at->ai_addrlen) == 0) {
        pairs_.push_back({client, worker});
        return;
      }
      ::close(worker);
    }
    ::close(client);
  }

  // Forwards what one end has sent to the other; returns false when the wire should break.
  bool Forward(const Pair& pair, bool to_client) {
    int64_t& left = to_client ? bounds_.to_client : bounds_.to_worker;
    char bytes[16384];
    const ssize_t got = ::recv(pair[to_client ? 1 : 0], bytes, sizeof bytes, 0);
    if (got <= 0) return false;
    const ssize_t part = std::min<int64_t>(got, left);
    for (ssize_t done = 0; done < part;) {
      const ssize_t put = ::send(pair[to_client ? 0 : 1], bytes + done, part - done, MSG_NOSIGNAL);
      if (put <= 0) return false;
      done += put;
    }
    left -= part;
    return left > 0;
  }

  void Break(int fd) const {
    const linger now{.l_onoff = 1, .l_linger = 0};
    if (bounds_.reset) ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    ::close(fd);
  }

  Bounds bounds_;
  addrinfo* target_ = nullptr;
  int listener_ = -1;
  const int stop_ = ::eventfd(0, EFD_CLOEXEC);
  std::string address_;
  std::vector<Pair> pairs_;  // used only by the thread
  std::thread thread_;
};

}  // namespace penstock::transfer
