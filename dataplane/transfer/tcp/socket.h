// SPDX-License-Identifier: Apache-2.0
// TCP sockets, none of which ever blocks.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::transfer::tcp {

// A descriptor; closed when destroyed.
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
  void Close();
  // Close(), and the end of the connection even if a process that was forked
  // meanwhile holds the descriptor too.
  void HangUp();

 private:
  int fd_ = -1;
};

// Where one can listen or connect.
struct Endpoint {
  sockaddr_storage address{};
  socklen_t bytes = 0;
};

struct HostAndPort {
  std::string host;  // without brackets
  int port = 0;
};
// "host:port" or "[host]:port", as IPv6 numbers are written; InvalidArgument for anything else and
// for port 0.
absl::StatusOr<HostAndPort> ParseAddress(std::string_view address);

// The endpoints of a host by name or number. Unavailable if there are none. Names
// are asked for in the network, which may take seconds; `numeric`: NotFound for those.
absl::StatusOr<std::vector<Endpoint>> LookUp(const HostAndPort& where, bool numeric);

// Listens at the first endpoint where it can; port 0: any. Unavailable says why not.
struct Bound {
  Socket socket;
  int port = 0;
};
absl::StatusOr<Bound> ListenAt(const HostAndPort& where);

// Whether both ends of that connection are on this machine, as far as addresses tell: a loopback's,
// or the same at both ends.
bool IsLocal(const Socket& connected);

// The next connection that somebody made, tuned; an empty one if there is none.
// ResourceExhausted: no descriptor or memory for it; it waits.
absl::StatusOr<Socket> AcceptAt(const Socket& listening);

// Begins to connect; the socket can be written when that has succeeded or failed.
absl::StatusOr<Socket> BeginConnecting(const Endpoint& endpoint);
// How that went; to be called once.
absl::Status Connected(const Socket& socket);

// Unavailable, with what the system says about `error`.
absl::Status BrokenBy(std::string_view what, int error);

}  // namespace penstock::transfer::tcp
