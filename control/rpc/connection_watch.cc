// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/connection_watch.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "control/sync/clock.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// How often connections are looked at. A peer can send this long beyond its limit.
constexpr absl::Duration kInterval = absl::Milliseconds(50);

// A client needs fewer bytes to prove itself, unless its hello is large or its certificates are.
constexpr uint64_t kBytesOfProof = 4 << 10;
// The kernel's TCP_ESTABLISHED and TCP_CLOSE_WAIT, which <linux/tcp.h> lacks.
constexpr uint8_t kEstablished = 1;
constexpr uint8_t kCloseWait = 8;

tcp_info InfoOf(const Descriptor& socket) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &bytes);
  return info;
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
    // gRPC shuts a socket down before it closes its own descriptor, so this one delays no end.
    Descriptor watched(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!watched || IsKeptFree(watched.get())) {
      CountRefused(counted_as_, Refused::kTooMany);
      close(fd);
      return;
    }
    if (ClientAddress client = ClientOf(fd); !client.host.empty()) {
      MutexLock lock(mu_);
      MakeRoomFor(client);
      unauthenticated_.push_back({std::move(client), std::move(watched), BootTime()});
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

// Closes connections that are above a limit, and forgets those that have ended.
void ConnectionWatch::Look(absl::Time now) {
  std::erase_if(unauthenticated_, [&](Connection& one) REQUIRES(mu_) {
    const tcp_info info = InfoOf(one.socket);
    const auto beyond = [](uint64_t bytes) { return std::max(bytes, kBytesOfProof); };
    const uint64_t sent = beyond(info.tcpi_bytes_received) - beyond(one.bytes);
    if (sent > 0) pace_->Sent(one.client, sent, now);
    one.bytes = info.tcpi_bytes_received;
    if (info.tcpi_state != kEstablished && info.tcpi_state != kCloseWait) return true;
    const bool too_long = one.bytes > limits_.bytes;
    if (!too_long && now < one.since + limits_.time) return false;
    Close(one, too_long ? Refused::kTooLong : Refused::kTooLate);
    return true;
  });
  uint64_t bytes = 0;
  for (const Connection& one : unauthenticated_) bytes += one.bytes;
  while (bytes > limits_.bytes_in_all) {
    const auto most = std::ranges::max_element(unauthenticated_, {}, &Connection::bytes);
    bytes -= most->bytes;
    Close(*most, Refused::kTooLong);
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

void ConnectionWatch::Close(const Connection& one, Refused reason) const {
  CountRefused(counted_as_, reason);
  shutdown(one.socket.get(), SHUT_RDWR);
}

}  // namespace penstock::control
