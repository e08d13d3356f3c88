// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/probe.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "control/protocol/host_port.h"

namespace penstock::control {
namespace {

constexpr int kPatienceMs = 200;

// Tries to connect, for at most kPatienceMs, and returns the errno value. 0: the connection was
// accepted; EINPROGRESS: no reply arrived.
int ErrorOf(const addrinfo& at) {
  const int fd = socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  int error = connect(fd, at.ai_addr, at.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd wait{.fd = fd, .events = POLLOUT, .revents = 0};
    socklen_t size = sizeof error;
    if (poll(&wait, 1, kPatienceMs) == 1) {
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  close(fd);
  return error;
}

// Returns whether the address cannot be tried from here: for example, a name may have addresses of
// a family that this machine does not support.
bool CannotBeTried(int error) {
  return error == EAFNOSUPPORT || error == EADDRNOTAVAIL || error == ENETUNREACH;
}

}  // namespace

bool PortRefuses(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) return false;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string host = WithoutBrackets(address.substr(0, colon));
  if (getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found) != 0) {
    return false;
  }
  bool refuses = false;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int error = ErrorOf(*at);
    if (CannotBeTried(error)) continue;
    refuses = error == ECONNREFUSED;
    if (!refuses) break;
  }
  freeaddrinfo(found);
  return refuses;
}

}  // namespace penstock::control
