// SPDX-License-Identifier: Apache-2.0
// One end of a connection of `tcp` that a test plays byte by byte.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/transfer/tcp/socket.h"
#include "dataplane/transfer/tcp/wire.h"

namespace penstock::transfer::tcp {

// Reads wait until all bytes are there.
class Peer {
 public:
  explicit Peer(Socket socket) : socket_(std::move(socket)) {}
  static Peer Dial(const std::string& address) {
    const std::vector<Endpoint> endpoints = *LookUp(*ParseAddress(address), /*numeric=*/false);
    for (const Endpoint& endpoint : endpoints) {
      Socket socket(::socket(endpoint.address.ss_family, SOCK_STREAM, 0));
      if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&endpoint.address),
                    endpoint.bytes) == 0) {
        return Peer(std::move(socket));
      }
    }
    return Peer(Socket());
  }

  bool Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t put = ::send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put <= 0) return false;
      bytes.remove_prefix(put);
    }
    return true;
  }
  // Reads this many bytes, or fewer if the connection ended.
  std::string Read(size_t bytes) {
    std::string got(bytes, '\0');
    size_t at = 0;
    while (at < bytes) {
      const ssize_t now = ::recv(socket_.fd(), got.data() + at, bytes - at, 0);
      if (now <= 0) break;
      at += now;
    }
    got.resize(at);
    return got;
  }
  // Reads the next message in the form that Decode() takes; empty at the end.
  std::string ReadMessage() {
    const std::string prefix = Read(kPrefixBytes);
    if (prefix.size() < kPrefixBytes) return "";
    uint64_t bytes;
    std::memcpy(&bytes, prefix.data(), sizeof bytes);
    return Read(bytes);
  }
  bool AtEnd() { return Read(1).empty(); }
  // Closes so that the other side sees a reset, as when a process is killed with unread bytes.
  void Kill() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    socket_.Close();
  }

 private:
  Socket socket_;
};

// A port of the loopback at which a test plays the worker.
class PeerPort {
 public:
  PeerPort() : listening_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    EXPECT_EQ(::bind(listening_.fd(), reinterpret_cast<sockaddr*>(&address), bytes), 0);
    EXPECT_EQ(::listen(listening_.fd(), 2), 0);
    ::getsockname(listening_.fd(), reinterpret_cast<sockaddr*>(&address), &bytes);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  const std::string& address() const { return address_; }
  // Accepts the next connection.
  Peer Accept() { return Peer(Socket(::accept(listening_.fd(), nullptr, nullptr))); }

 private:
  const Socket listening_;
  std::string address_;
};

}  // namespace penstock::transfer::tcp
