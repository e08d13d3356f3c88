// SPDX-License-Identifier: Apache-2.0
// The seam between the dispatcher and the transport of its messages: gRPC (grpc_listener.cc), or
// another transport that is linked in its place.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "control/dispatcher/core.h"
#include "penstock/server.h"

namespace penstock::control {

class Listener {
 public:
  // Accepts calls and streams at the config's host and port, and passes them to `core`, which must
  // outlive the listener. Unavailable if it cannot listen; for TLS, the errors of
  // ServerCredentials.
  static absl::StatusOr<std::unique_ptr<Listener>> Start(const DispatcherConfig& config,
                                                         Core* core);
  virtual ~Listener() = default;  // shuts down if needed; nothing reaches the core after it
  virtual int port() const = 0;
  // Ends all streams and calls, and accepts no more. Any thread.
  virtual void Shutdown() = 0;
};

}  // namespace penstock::control
