// SPDX-License-Identifier: Apache-2.0
// TCP sockets, all non-blocking.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::transfer::tcp {

// A descriptor that is closed when the object is destroyed.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Socket() { Close(); }

  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  // Gives up the ownership of the descriptor, and returns it.
  int Release() { return std::exchange(fd_, -1); }
  void Close();
  // Closes the descriptor and ends the connection, even if a child process still has the
  // descriptor.
  void HangUp();

 private:
  int fd_ = -1;
};

// An address to listen at or to connect to.
struct Endpoint {
  sockaddr_storage address{};
  socklen_t bytes = 0;
};

struct HostAndPort {
  std::string host;  // without brackets
  int port = 0;
};
// Parses "host:port" or "[host]:port" (for IPv6). InvalidArgument for anything else and for port 0.
absl::StatusOr<HostAndPort> ParseAddress(std::string_view address);

// Returns the endpoints of a host, which is given as a name or a number. Unavailable if there are
// none. A name is looked up in the network, which may take seconds. If `numeric` is true, a name
// gives NotFound instead.
absl::StatusOr<std::vector<Endpoint>> LookUp(const HostAndPort& where, bool numeric);

struct Bound {
  Socket socket;
  int port = 0;  // the port that the socket listens at
};
// Listens at the first endpoint that works; port 0: any. Unavailable with the reason.
absl::StatusOr<Bound> ListenAt(const HostAndPort& where);

// Returns true if the addresses show that both ends of the connection are on this machine: a
// loopback address, or the same address at both ends.
bool IsLocal(const Socket& connected);

// Returns the next connection, with the socket options set as for all links, or an empty socket if
// there is none. ResourceExhausted if there is no descriptor or memory for the connection, which
// then stays queued.
absl::StatusOr<Socket> AcceptAt(const Socket& listening);

// Begins to connect. The socket becomes writable when connecting has succeeded or failed.
absl::StatusOr<Socket> BeginConnecting(const Endpoint& endpoint);
// Returns the result of connecting. Call once.
absl::Status Connected(const Socket& socket);

// Returns Unavailable with the system's text for `error`.
absl::Status BrokenBy(std::string_view what, int error);

}  // namespace penstock::transfer::tcp
