// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/accept_loop.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/protocol/host_port.h"
#include "control/sync/clock.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// The pause after accept failed for lack of a descriptor or of memory.
constexpr int kPauseMs = 100;
// How many connections are accepted from one address before the next address has its turn.
constexpr int kAcceptsPerTurn = 256;
// How many ports are tried if any free port will do. A port that is free at one address of a host
// may be in use at another one.
constexpr int kMostPorts = 16;

void SetPort(addrinfo& at, int port) {
  const in_port_t in_network_order = htons(static_cast<uint16_t>(port));
  if (at.ai_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(at.ai_addr)->sin_port = in_network_order;
  } else if (at.ai_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(at.ai_addr)->sin6_port = in_network_order;
  }
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// Returns a socket that listens there, or -1 with errno.
int ListenAt(const addrinfo& at, bool both_families) {
  const int fd = socket(at.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  const int v6_only = both_families ? 0 : 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // a port in use is still an error
  setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // connections inherit it
  if (bind(fd, at.ai_addr, at.ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

struct Listeners {
  std::vector<int> fds;
  int port = 0;
  int error = 0;  // of an address that has no listener
};

Listeners ListenAtAll(addrinfo* found, int port, bool both_families) {
  Listeners made;
  for (addrinfo* at = found; at != nullptr; at = at->ai_next) {
    SetPort(*at, made.port == 0 ? port : made.port);
    const int fd = ListenAt(*at, both_families);
    // A host may lack one family. But a port in use would send some clients to another server.
    if (fd < 0 && made.error != EADDRINUSE) made.error = errno;
    if (fd < 0) continue;
    made.fds.push_back(fd);
    made.port = PortOf(fd);
  }
  return made;
}

absl::StatusOr<Listeners> ListenAtHost(const std::string& host, int port, bool both_families) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (int error = getaddrinfo(host.c_str(), nullptr, &hints, &found)) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", JoinHostPort(host, port), ": ", gai_strerror(error)));
  }
  Listeners made = ListenAtAll(found, port, both_families);
  for (int i = 1; i < kMostPorts && port == 0 && made.error == EADDRINUSE; ++i) {
    for (int fd : made.fds) close(fd);
    made = ListenAtAll(found, port, both_families);
  }
  freeaddrinfo(found);
  return made;
}

}  // namespace

AcceptLoop::AcceptLoop(Port counted_as, PaceLimits pace)
    : counted_as_(counted_as),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      pace_(std::make_shared<ConnectionPace>(counted_as, pace)) {}

AcceptLoop::~AcceptLoop() {
  Stop();
  if (thread_.joinable()) thread_.join();
  for (int fd : listeners_) close(fd);
  close(wake_);
}

AcceptLoop::Take AcceptLoop::Into(grpc::ServerBuilder& builder,
                                  std::shared_ptr<grpc::ServerCredentials> credentials) {
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;
  std::shared_ptr<Acceptor> acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      std::move(credentials));
  return [acceptor = std::move(acceptor)](int fd) {
    Acceptor::NewConnectionParameters connection;
    connection.fd = fd;
    acceptor->HandleNewConnection(&connection);
  };
}

absl::StatusOr<std::unique_ptr<AcceptLoop>> AcceptLoop::Listen(const std::string& host, int port,
                                                               Port counted_as, PaceLimits pace) {
  auto loop = std::unique_ptr<AcceptLoop>(new AcceptLoop(counted_as, pace));
  RETURN_IF_ERROR(loop->Bind(WithoutBrackets(host), port));
  return loop;
}

absl::Status AcceptLoop::Bind(const std::string& host, int port) {
  const bool any = host == "0.0.0.0";
  ASSIGN_OR_RETURN(Listeners made, ListenAtHost(any ? "::" : host, port, any || host == "::"));
  if (any && made.fds.empty() && made.error != EADDRINUSE) {  // the kernel has no IPv6
    ASSIGN_OR_RETURN(made, ListenAtHost(host, port, false));
  }
  listeners_ = std::move(made.fds);
  port_ = made.port;
  if (!listeners_.empty() && made.error != EADDRINUSE) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", JoinHostPort(host, port), ": ", std::strerror(made.error),
                   ": the port is in use, or the address is not one of this host"));
}

absl::Status AcceptLoop::Start(Take take) {
  take_ = std::move(take);
  ASSIGN_OR_RETURN(thread_, StartThread("the connections of a server", [this] { Run(); }));
  return absl::OkStatus();
}

void AcceptLoop::Proved(const std::string& peer) {
  if (pace_->Proved(ClientFromGrpc(peer))) eventfd_write(wake_, 1);
}

void AcceptLoop::Stop() {
  stopping_ = true;
  eventfd_write(wake_, 1);
}

void AcceptLoop::Run() {
  std::vector<pollfd> waits = {{wake_, POLLIN, 0}};
  for (int fd : listeners_) waits.push_back({fd, POLLIN, 0});
  bool more = false;
  while (!stopping_) {
    const absl::Time next = pace_->NextTake();
    const bool together = next != absl::InfiniteFuture();
    if (together && !more) {
      const absl::Duration left = std::max(next - BootTime(), absl::ZeroDuration());
      poll(waits.data(), 1, static_cast<int>(absl::ToInt64Milliseconds(left) + 1));
    }
    if (poll(waits.data(), waits.size(), together ? 0 : -1) < 0 && errno != EINTR) break;
    eventfd_t wakes;
    eventfd_read(wake_, &wakes);
    more = false;
    for (size_t i = 1; i < waits.size() && !stopping_; ++i) {
      if (waits[i].revents != 0 && AcceptFrom(waits[i].fd)) more = true;
    }
    for (const ConnectionPace::Arrived& one : pace_->Take(BootTime())) take_(one.fd);
  }
  for (int fd : std::exchange(listeners_, {})) close(fd);
}

// Returns whether more connections may be queued.
bool AcceptLoop::AcceptFrom(int listener) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
      CountRefused(counted_as_, Refused::kTooMany);
      pollfd wake = {wake_, POLLIN, 0};
      poll(&wake, 1, kPauseMs);
      return false;
    }
    if (fd < 0) return false;
    if (!IsKeptFree(fd)) {
      pace_->Add(fd, BootTime());
      continue;
    }
    CountRefused(counted_as_, Refused::kTooMany);
    close(fd);
  }
  return true;
}

}  // namespace penstock::control
