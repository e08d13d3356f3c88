// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/connection_watch.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "control/sync/clock.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// How often connections are looked at. A peer can send this long beyond its limit.
constexpr absl::Duration kInterval = absl::Milliseconds(50);

// Returns the peer as "address:port"; an IPv4 address as such, also on an IPv6 socket.
std::string PeerOf(int fd) {
  sockaddr_storage at{};
  socklen_t bytes = sizeof at;
  char text[INET6_ADDRSTRLEN] = "";
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&at), &bytes) != 0) return "";
  if (at.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(at);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return absl::StrCat(text, ":", ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(at);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
  } else {
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  }
  return absl::StrCat(text, ":", ntohs(v6.sin6_port));
}

// Returns gRPC's name of a peer in the form of PeerOf(): without scheme, brackets and zone.
std::string PeerOf(const std::string& of_grpc) {
  std::string peer = of_grpc.substr(of_grpc.find(':') + 1);
  peer = absl::StrReplaceAll(peer, {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}});
  if (const size_t zone = peer.find('%'); zone != std::string::npos) {
    peer.erase(zone, peer.rfind(':') - zone);
  }
  return peer;
}

// Returns 0 if it is no socket, or if the kernel has no cookies.
uint64_t CookieOf(int fd) {
  uint64_t cookie = 0;
  socklen_t bytes = sizeof cookie;
  return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &bytes) == 0 ? cookie : 0;
}

// Returns the bytes that have arrived; nullopt if it is no connection.
std::optional<uint64_t> ReceivedBytes(int fd) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return std::nullopt;
  return info.tcpi_bytes_received;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ConnectionWatch>> ConnectionWatch::Start(Port counted_as,
                                                                        ConnectionLimits limits) {
  std::unique_ptr<ConnectionWatch> made(new ConnectionWatch(counted_as, limits));
  ASSIGN_OR_RETURN(made->thread_, StartThread("the watch of new connections",
                                              [self = made.get()] { self->Run(); }));
  return made;
}

ConnectionWatch::~ConnectionWatch() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

AcceptLoop::Take ConnectionWatch::Watching(AcceptLoop::Take take) {
  return [this, take = std::move(take)](int fd) {
    if (const std::string peer = PeerOf(fd); !peer.empty()) {
      MutexLock lock(mu_);
      unauthenticated_.insert_or_assign(peer, Connection{fd, CookieOf(fd), BootTime()});
      if (unauthenticated_.size() == 1) changed_.NotifyAll();
    }
    take(fd);
  };
}

void ConnectionWatch::Authenticated(const std::string& peer) {
  const std::string known = PeerOf(peer);
  MutexLock lock(mu_);
  unauthenticated_.erase(known);
}

void ConnectionWatch::Run() {
  MutexLock lock(mu_);
  while (true) {
    changed_.Wait(lock, [this]() REQUIRES(mu_) { return stopping_ || !unauthenticated_.empty(); });
    if (changed_.WaitFor(lock, kInterval, [this]() REQUIRES(mu_) { return stopping_; })) return;
    const absl::Time now = BootTime();
    std::erase_if(unauthenticated_,
                  [&](const auto& one) { return IsOver(one.first, one.second, now); });
  }
}

// Returns whether the connection is closed. Closes it if it is above a limit.
bool ConnectionWatch::IsOver(const std::string& peer, const Connection& connection,
                             absl::Time now) const {
  const std::optional<uint64_t> received = ReceivedBytes(connection.fd);
  if (!received.has_value()) return true;
  const bool too_long = *received > limits_.bytes;
  if (!too_long && now < connection.since + limits_.time) return false;
  // The number may be another socket's by now. If gRPC closes the socket just after this check,
  // another connection is shut down, whose peer connects again.
  // A kernel without cookies gives 0 for all sockets, so the peer is compared too.
  if (CookieOf(connection.fd) != connection.cookie || PeerOf(connection.fd) != peer) return true;
  CountRefused(counted_as_, too_long ? Refused::kTooLong : Refused::kTooLate);
  shutdown(connection.fd, SHUT_RDWR);
  return true;
}

}  // namespace penstock::control
