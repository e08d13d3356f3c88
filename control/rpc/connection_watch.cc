// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/connection_watch.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>
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

// Returns the bytes that have arrived; 0 if it is no connection.
uint64_t ReceivedBytes(int fd) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 ? info.tcpi_bytes_received : 0;
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
    if (ClientAddress client = ClientOf(fd); !client.host.empty()) {
      MutexLock lock(mu_);
      MakeRoomFor(client);
      unauthenticated_.push_back({std::move(client), fd, CookieOf(fd), BootTime()});
      if (unauthenticated_.size() == 1) changed_.NotifyAll();
    }
    take(fd);
  };
}

void ConnectionWatch::Authenticated(const std::string& peer) {
  const ClientAddress known = ClientFromGrpc(peer);
  MutexLock lock(mu_);
  std::erase_if(unauthenticated_, [&](const Connection& one) { return one.client == known; });
}

void ConnectionWatch::Run() {
  MutexLock lock(mu_);
  while (true) {
    changed_.Wait(lock, [this]() REQUIRES(mu_) { return stopping_ || !unauthenticated_.empty(); });
    if (changed_.WaitFor(lock, kInterval, [this]() REQUIRES(mu_) { return stopping_; })) return;
    Look(BootTime());
  }
}

// Forgets what gRPC has closed, and closes what is above a limit.
void ConnectionWatch::Look(absl::Time now) {
  std::erase_if(unauthenticated_, [](const Connection& one) { return !IsOpen(one); });
  for (Connection& one : unauthenticated_) one.bytes = ReceivedBytes(one.fd);
  std::erase_if(unauthenticated_, [&](const Connection& one) REQUIRES(mu_) {
    const bool too_long = one.bytes > limits_.bytes;
    if (!too_long && now < one.since + limits_.time) return false;
    Close(one, too_long ? Refused::kTooLong : Refused::kTooLate);
    if (too_long) pace_->Overused(one.client, now);
    return true;
  });
  uint64_t bytes = 0;
  for (const Connection& one : unauthenticated_) bytes += one.bytes;
  while (bytes > limits_.bytes_in_all) {
    const auto most = std::ranges::max_element(unauthenticated_, {}, &Connection::bytes);
    bytes -= most->bytes;
    Close(*most, Refused::kTooLong);
    pace_->Overused(most->client, now);
    unauthenticated_.erase(most);
  }
}

// Closes a connection if there are too many with a further one of that client.
void ConnectionWatch::MakeRoomFor(const ClientAddress& client) {
  if (unauthenticated_.size() < std::min(limits_.of_source, limits_.in_all)) return;
  std::map<std::string, size_t> of_source;
  ++of_source[client.source()];
  for (const Connection& one : unauthenticated_) ++of_source[one.client.source()];
  if (of_source[client.source()] <= limits_.of_source && unauthenticated_.size() < limits_.in_all)
    return;
  // The first of equal elements, so the oldest connection.
  const auto oldest = std::ranges::max_element(
      unauthenticated_, {}, [&](const Connection& one) { return of_source[one.client.source()]; });
  Close(*oldest, Refused::kTooMany);
  unauthenticated_.erase(oldest);
}

bool ConnectionWatch::IsOpen(const Connection& one) {
  // The number may be another socket's by now.
  return CookieOf(one.fd) == one.cookie && (one.cookie != 0 || ClientOf(one.fd) == one.client);
}

void ConnectionWatch::Close(const Connection& one, Refused reason) const {
  // If gRPC closes the socket just after this check, another connection may be shut down, whose
  // peer connects again.
  if (!IsOpen(one)) return;
  CountRefused(counted_as_, reason);
  shutdown(one.fd, SHUT_RDWR);
}

}  // namespace penstock::control
