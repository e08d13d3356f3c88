// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "control/protocol/host_port.h"
#include "include/status_macros.h"

namespace penstock::transfer::tcp {
namespace {

// Used only between two processes of one host: paced controls such as bbr halve the throughput
// there, and a link has credits of its own. A kernel without cubic uses its default. Connections
// over a network keep the machine's congestion control, which suits that network.
constexpr char kCongestionControl[] = "cubic";

// Times to detect a host that is gone. A host is probed after kSilenceSeconds without data. It
// counts as gone if it does not answer for kAnswerSeconds, or acknowledges nothing for
// kUnacknowledgedMilliseconds. gRPC uses the same times on control connections.
constexpr int kSilenceSeconds = 10;
constexpr int kAnswerSeconds = 5;
constexpr unsigned kUnacknowledgedMilliseconds = 15'000;

// An option that cannot be set keeps the system's value.
template <class T>
void Set(int fd, int level, int option, const T& value) {
  (void)::setsockopt(fd, level, option, &value, sizeof value);
}

void Tune(int fd) {
  Set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  Set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  Set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kSilenceSeconds);
  Set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kAnswerSeconds);
  Set(fd, IPPROTO_TCP, TCP_KEEPCNT, 1);
  Set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMilliseconds);
}

void TuneConnected(const Socket& socket) {
  if (!IsLocal(socket)) return;
  (void)::setsockopt(socket.fd(), IPPROTO_TCP, TCP_CONGESTION, kCongestionControl,
                     sizeof kCongestionControl - 1);
}

// Returns an address in IPv6 form; IPv4 is mapped.
in6_addr HostOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6)
    return reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  in6_addr mapped{};
  mapped.s6_addr[10] = mapped.s6_addr[11] = 0xff;
  std::memcpy(&mapped.s6_addr[12], &reinterpret_cast<const sockaddr_in&>(address).sin_addr, 4);
  return mapped;
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

absl::StatusOr<Socket> ListenAt(const Endpoint& endpoint) {
  Socket socket(
      ::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return BrokenBy("cannot create a socket", errno);
  Set(socket.fd(), SOL_SOCKET, SO_REUSEADDR, 1);   // a port in use is still an error
  Set(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 0);  // "::" accepts IPv4 too, as in gRPC
  if (::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.bytes) !=
          0 ||
      ::listen(socket.fd(), SOMAXCONN) != 0) {
    return BrokenBy("cannot bind or listen", errno);
  }
  return socket;
}

}  // namespace

bool IsLocal(const Socket& connected) {
  sockaddr_storage ours{};
  sockaddr_storage theirs{};
  socklen_t bytes = sizeof ours;
  if (::getsockname(connected.fd(), reinterpret_cast<sockaddr*>(&ours), &bytes) != 0) return false;
  bytes = sizeof theirs;
  if (::getpeername(connected.fd(), reinterpret_cast<sockaddr*>(&theirs), &bytes) != 0) {
    return false;
  }
  const in6_addr here = HostOf(ours);
  const in6_addr there = HostOf(theirs);
  return IN6_IS_ADDR_LOOPBACK(&there) ||
         (IN6_IS_ADDR_V4MAPPED(&there) && there.s6_addr[12] == IN_LOOPBACKNET) ||
         IN6_ARE_ADDR_EQUAL(&here, &there);
}

void Socket::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void Socket::HangUp() {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
  Close();
}

absl::Status BrokenBy(std::string_view what, int error) {
  char text[128] = "";
  const char* says = ::strerror_r(error, text, sizeof text);
  return absl::UnavailableError(absl::StrCat(std::string(what), ": ", says));
}

absl::StatusOr<HostAndPort> ParseAddress(std::string_view address) {
  const size_t colon = address.rfind(':');
  HostAndPort where;
  if (colon != std::string_view::npos && colon > 0 &&
      absl::SimpleAtoi(std::string(address.substr(colon + 1)), &where.port) && where.port > 0 &&
      where.port <= 65535) {
    const std::string host(address.substr(0, colon));
    where.host = control::WithoutBrackets(host);
    // "fd00::1:7000" is itself an IPv6 address.
    if (where.host != host || host.find(':') == std::string::npos) return where;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", std::string(address), "' is not an address; use host:port, or [host]:port for IPv6"));
}

absl::StatusOr<std::vector<Endpoint>> LookUp(const HostAndPort& where, bool numeric) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (numeric ? AI_NUMERICHOST : 0);
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> freed(found, [](addrinfo* list) {
    if (list != nullptr) ::freeaddrinfo(list);
  });
  if (error == EAI_NONAME && numeric) return absl::NotFoundError("a name, not a number");
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("the host '", where.host, "' cannot be resolved: ", ::gai_strerror(error)));
  }
  std::vector<Endpoint> endpoints;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Endpoint endpoint;
    if (one->ai_addrlen > sizeof endpoint.address) continue;
    std::memcpy(&endpoint.address, one->ai_addr, one->ai_addrlen);
    endpoint.bytes = one->ai_addrlen;
    endpoints.push_back(endpoint);
  }
  return endpoints;
}

absl::StatusOr<Bound> ListenAt(const HostAndPort& where) {
  ASSIGN_OR_RETURN(std::vector<Endpoint> endpoints, LookUp(where, /*numeric=*/false));
  absl::Status last = absl::UnavailableError("the host has no address");
  for (const Endpoint& endpoint : endpoints) {
    absl::StatusOr<Socket> socket = ListenAt(endpoint);
    if (socket.ok()) {
      const int port = PortOf(socket->fd());
      return Bound{*std::move(socket), port};
    }
    last = socket.status();
  }
  return Annotate(last, "cannot listen at ", control::JoinHostPort(where.host, where.port),
                  ": the port is in use, or the host is not an address of this machine");
}

absl::StatusOr<Socket> AcceptAt(const Socket& listening) {
  while (true) {
    Socket socket(::accept4(listening.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      Tune(socket.fd());
      TuneConnected(socket);
      return socket;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Socket();
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return absl::ResourceExhaustedError(
          "no descriptors or memory are left for another connection");
    }
    if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK)
      return BrokenBy("cannot accept a connection", errno);
    // Any other error concerns only that connection: accept(2), "Error handling".
  }
}

absl::StatusOr<Socket> BeginConnecting(const Endpoint& endpoint) {
  Socket socket(
      ::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return BrokenBy("cannot create a socket", errno);
  Tune(socket.fd());
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&endpoint.address),
                endpoint.bytes) != 0 &&
      errno != EINPROGRESS) {
    return BrokenBy("cannot connect", errno);
  }
  return socket;
}

absl::Status Connected(const Socket& socket) {
  int error = 0;
  socklen_t bytes = sizeof error;
  if (::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
  if (error != 0) return BrokenBy("cannot connect", error);
  TuneConnected(socket);
  return absl::OkStatus();
}

}  // namespace penstock::transfer::tcp
