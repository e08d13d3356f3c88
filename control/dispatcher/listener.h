// SPDX-License-Identifier: Apache-2.0
// The seam between the dispatcher and what carries its messages: gRPC
// (grpc_listener.cc); the linker chooses.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "control/dispatcher/core.h"
#include "penstock/server.h"

namespace penstock::control {

class Listener {
 public:
  // Brings calls and streams from the config's host and port to `core`, which must outlive the
  // listener. Unavailable where it cannot listen; the errors of ServerCredentials for its TLS.
  static absl::StatusOr<std::unique_ptr<Listener>> Start(const DispatcherConfig& config,
                                                         Core* core);
  virtual ~Listener() = default;  // ends what Shutdown() has not; nothing reaches the core after it
  virtual int port() const = 0;
  // Ends all streams and calls, and takes no more. Any thread.
  virtual void Shutdown() = 0;
};

}  // namespace penstock::control
