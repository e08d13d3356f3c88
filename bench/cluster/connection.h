// SPDX-License-Identifier: Apache-2.0
// Exchanges lines of text between two hosts.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "dataplane/transfer/tcp/socket.h"

namespace penstock::bench {

// Used by at most one reading and one writing thread at a time.
class Connection {
 public:
  explicit Connection(transfer::tcp::Socket socket) : socket_(std::move(socket)) {}

  // Connects to "HOST:PORT". Retries until a process listens there; Unavailable with the last
  // reason after `bound`; Cancelled when interrupted.
  static absl::StatusOr<Connection> Make(const std::string& address, absl::Duration bound);

  int fd() const { return socket_.fd(); }
  void HangUp() { socket_.HangUp(); }
  // Waits for room as long as the other side lives.
  absl::Status Write(const std::string& line);
  // Returns a line without its break. Unavailable when the other side has closed, DeadlineExceeded
  // after `bound`, Cancelled when interrupted.
  absl::StatusOr<std::string> ReadLine(absl::Duration bound);

  // Return the addresses of both ends as numbers, without ports.
  std::string here() const;
  std::string there() const;

 private:
  transfer::tcp::Socket socket_;
  std::string unread_;
};

}  // namespace penstock::bench
