// SPDX-License-Identifier: Apache-2.0
// The seam between the dispatcher and the network that carries its messages. grpc_listener.cc
// implements it with gRPC; another implementation may be linked in place of that file.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/server/port_bounds.h"
#include "control/protocol/principal.h"
#include "penstock/server.h"

namespace penstock::control {

class Listener {
 public:
  // Binds the config's host and port. Peers that connect wait until Serve(). Unavailable if the
  // port cannot be bound; with TLS, also the errors of ServerCredentials; with an auth_file, those
  // of Authenticator::Open.
  static absl::StatusOr<std::unique_ptr<Listener>> Bind(const DispatcherConfig& config,
                                                        const PortLimits& limits = {});
  virtual ~Listener() = default;  // calls Shutdown() if needed; no call reaches the core afterwards
  // Accepts calls and streams, and passes them to `core`, which must outlive the listener. Call it
  // once. Internal or ResourceExhausted if it cannot accept.
  virtual absl::Status Serve(Core* core) = 0;
  virtual int port() const = 0;  // as bound; the config's, if a port is chosen only by Serve()
  // Returns who presents `token`, as Authenticator::Identify. Any thread may call it.
  virtual absl::StatusOr<Caller> Identify(const std::string& /*token*/,
                                          const std::string& /*address*/) {
    return absl::UnauthenticatedError("this dispatcher cannot read tokens of principals");
  }
  // Ends streams and calls whose peers are late. Called several times a second, by one thread.
  virtual void Sweep() {}
  // Ends streams whose openers have lost their rights. Called several times a second, by a thread
  // of its own, since it may wait for the disk with the auth_file.
  virtual void SweepRights() {}
  // Ends all streams and calls, and accepts no new ones. Any thread may call it. REQUIRES: Serve()
  // has succeeded.
  virtual void Shutdown() = 0;
};

}  // namespace penstock::control
