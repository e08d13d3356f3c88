// SPDX-License-Identifier: Apache-2.0
// Connects to a worker: tries its endpoints one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/transfer/tcp/loop.h"
#include "dataplane/transfer/tcp/socket.h"

namespace penstock::transfer::tcp {

// Not thread-safe.
class Connector {
 public:
  // The result of looking up the worker's name.
  void SetEndpoints(absl::StatusOr<std::vector<Endpoint>> endpoints) {
    endpoints_ = std::move(endpoints);
  }
  // Call this after SetEndpoints(), and then for the `events` of `socket`, which this method sets
  // and whose events `loop` reports to `member`. Returns true once `socket` is connected, an error
  // if no endpoint accepts.
  absl::StatusOr<bool> Advance(uint32_t events, Loop& loop,
                               const std::shared_ptr<Loop::Member>& member, Socket& socket);
  // REQUIRES: Advance() has returned true.
  const Endpoint& connected_to() const { return (**endpoints_)[tried_ - 1]; }

 private:
  std::optional<absl::StatusOr<std::vector<Endpoint>>> endpoints_;
  size_t tried_ = 0;         // endpoints tried so far
  bool connecting_ = false;  // to the last of those
  absl::Status last_failure_ = absl::UnavailableError("the host has no address");
};

}  // namespace penstock::transfer::tcp
