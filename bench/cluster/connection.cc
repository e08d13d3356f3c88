// SPDX-License-Identifier: Apache-2.0
#include "bench/cluster/connection.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "bench/interrupt.h"
#include "penstock/status.h"

namespace penstock::bench {
namespace {

namespace tcp = transfer::tcp;

constexpr absl::Duration kDialAgain = absl::Milliseconds(100);

// Returns whether `events` or an interrupt came before `end`.
bool WaitFor(int fd, short events, absl::Time end) {
  while (true) {
    const int64_t left_ms = std::max<int64_t>(0, absl::ToInt64Milliseconds(end - absl::Now()));
    pollfd ready[] = {{.fd = fd, .events = events, .revents = 0},
                      {.fd = InterruptFd(), .events = POLLIN, .revents = 0}};
    const int count = ::poll(ready, 2, static_cast<int>(std::min<int64_t>(left_ms, 1 << 30)));
    if (count > 0) return true;
    if (count == 0) return false;
    if (errno != EINTR) return true;  // the call after this fails with the reason
  }
}

absl::StatusOr<tcp::Socket> ConnectOnce(const tcp::HostAndPort& where, absl::Time end) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<tcp::Endpoint> endpoints,
                            tcp::LookUp(where, /*numeric=*/false));
  absl::Status last = absl::UnavailableError("it has no address");
  for (const tcp::Endpoint& endpoint : endpoints) {
    absl::StatusOr<tcp::Socket> socket = tcp::BeginConnecting(endpoint);
    last = socket.status();
    if (!last.ok()) continue;
    last = WaitFor(socket->fd(), POLLOUT, end) ? tcp::Connected(*socket)
                                               : absl::UnavailableError("it does not answer");
    if (last.ok()) return socket;
  }
  return last;
}

std::string AddressText(int (*name_of)(int, sockaddr*, socklen_t*), int fd) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  char text[NI_MAXHOST] = "";
  if (name_of(fd, any, &bytes) != 0 ||
      ::getnameinfo(any, bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  return std::string(absl::StripPrefix(text, "::ffff:"));  // an IPv4 address at a socket for both
}

}  // namespace

absl::StatusOr<Connection> Connection::Make(const std::string& address, absl::Duration bound) {
  PENSTOCK_ASSIGN_OR_RETURN(const tcp::HostAndPort where, tcp::ParseAddress(address));
  const absl::Time end = absl::Now() + bound;
  while (true) {
    absl::StatusOr<tcp::Socket> socket = ConnectOnce(where, end);
    if (socket.ok()) return Connection(*std::move(socket));
    PENSTOCK_RETURN_IF_ERROR(CheckInterrupted());
    if (absl::Now() + kDialAgain > end) {
      return Annotate(socket.status(), "nobody is at ", address, " within ",
                      absl::FormatDuration(bound));
    }
    absl::SleepFor(kDialAgain);
  }
}

absl::Status Connection::Write(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t at = 0; at < text.size();) {
    const ssize_t put = ::send(fd(), text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (put >= 0) {
      at += static_cast<size_t>(put);
    } else if (errno == EAGAIN) {
      WaitFor(fd(), POLLOUT, absl::InfiniteFuture());
      PENSTOCK_RETURN_IF_ERROR(CheckInterrupted());
    } else if (errno != EINTR) {
      return tcp::BrokenBy("the other host has closed", errno);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Connection::ReadLine(absl::Duration bound) {
  const absl::Time end = absl::Now() + bound;
  while (true) {
    if (const size_t line_end = unread_.find('\n'); line_end != std::string::npos) {
      std::string line = unread_.substr(0, line_end);
      unread_.erase(0, line_end + 1);
      return line;
    }
    if (!WaitFor(fd(), POLLIN, end)) {
      return absl::DeadlineExceededError(
          absl::StrCat("the other host said nothing for ", absl::FormatDuration(bound)));
    }
    PENSTOCK_RETURN_IF_ERROR(CheckInterrupted());
    char bytes[4096];
    const ssize_t got = ::read(fd(), bytes, sizeof bytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return tcp::BrokenBy("the other host is lost", errno);
    if (got == 0) return absl::UnavailableError("the other host has closed");
    unread_.append(bytes, static_cast<size_t>(got));
  }
}

std::string Connection::here() const {
  return AddressText(::getsockname, fd());
}

std::string Connection::there() const {
  return AddressText(::getpeername, fd());
}

}  // namespace penstock::bench
