// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/connection_watch.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <utility>

#include "control/sync/clock.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// How often connections are looked at. A peer can send this long beyond its limit.
constexpr absl::Duration kInterval = absl::Milliseconds(50);

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

AcceptLoop::Take ConnectionWatch::Watching(std::shared_ptr<ConnectionPace> pace,
                                           AcceptLoop::Take take) {
  MutexLock lock(mu_);
  pace_ = std::move(pace);
  return [this, take = std::move(take)](int fd) {
    if (const ClientAddress client = ClientOf(fd); !client.host.empty()) {
      MutexLock lock(mu_);
      unauthenticated_.insert_or_assign(client, Connection{fd, CookieOf(fd), BootTime()});
      if (unauthenticated_.size() == 1) changed_.NotifyAll();
    }
    take(fd);
  };
}

void ConnectionWatch::Authenticated(const std::string& peer) {
  const ClientAddress known = ClientFromGrpc(peer);
  MutexLock lock(mu_);
  unauthenticated_.erase(known);
}

void ConnectionWatch::Run() {
  MutexLock lock(mu_);
  while (true) {
    changed_.Wait(lock, [this]() REQUIRES(mu_) { return stopping_ || !unauthenticated_.empty(); });
    if (changed_.WaitFor(lock, kInterval, [this]() REQUIRES(mu_) { return stopping_; })) return;
    const absl::Time now = BootTime();
    std::erase_if(unauthenticated_, [&](const auto& one) REQUIRES(mu_) {
      return IsOver(one.first, one.second, now);
    });
  }
}

// Returns whether the connection is closed. Closes it if it is above a limit.
bool ConnectionWatch::IsOver(const ClientAddress& client, const Connection& connection,
                             absl::Time now) {
  const std::optional<uint64_t> received = ReceivedBytes(connection.fd);
  if (!received.has_value()) return true;
  const bool too_long = *received > limits_.bytes;
  if (!too_long && now < connection.since + limits_.time) return false;
  // The number may be another socket's by now. If gRPC closes the socket just after this check,
  // another connection is shut down, whose peer connects again.
  // A kernel without cookies gives 0 for all sockets, so the client is compared too.
  if (CookieOf(connection.fd) != connection.cookie || ClientOf(connection.fd) != client)
    return true;
  CountRefused(counted_as_, too_long ? Refused::kTooLong : Refused::kTooLate);
  shutdown(connection.fd, SHUT_RDWR);
  if (too_long) pace_->Overused(client, now);
  return true;
}

}  // namespace penstock::control
