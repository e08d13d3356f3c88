// SPDX-License-Identifier: Apache-2.0
// The dispatcher's port on the simulated network: serves a core to the stubs of stub.h, as
// control/dispatcher/server/grpc_listener.cc serves it over gRPC. There are no rights and no bounds
// on what a peer may send.
//
// A connection is one call or one stream. Its first message is the name of the method, as in
// control/proto/dispatcher.proto. Each further message is a message of that service, in the bytes
// in which gRPC would carry it. The connection is closed with the status of the call or stream.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "control/dispatcher/core.h"
#include "tools/simulator/world/network.h"

namespace penstock::simulator {

class Port {
 public:
  // Serves `core`, which must outlive the port, at "host:port" on fibers of `at`. AlreadyExists if
  // a living process listens there.
  static absl::StatusOr<std::unique_ptr<Port>> Open(Network& network,
                                                    const std::shared_ptr<Process>& at,
                                                    const std::string& address,
                                                    control::Core* core);
  // Breaks all streams and calls: Unavailable. Then no fiber is in the core for the port, and none
  // follows. Call it on a fiber, also if the process was killed.
  ~Port();

  static std::vector<std::string> Methods();  // the names of all calls, sorted

 private:
  class Visit;

  Port(control::Core* core, TrafficObserver* observer) : core_(core), observer_(observer) {}

  control::Core* const core_;
  TrafficObserver* const observer_;
  std::unique_ptr<Acceptor> acceptor_;
  uint64_t last_visit_ = 0;
  std::map<uint64_t, std::shared_ptr<Visit>> visits_;  // the open connections
};

}  // namespace penstock::simulator
