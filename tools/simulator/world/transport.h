// SPDX-License-Identifier: Apache-2.0
// `sim`: links between simulated processes, over the simulated network. The messages are those of
// dataplane/transfer/message.h. Elements are copied into the receiver's pool and checked there.
//
// A link's process is that of the fiber that listens or dials. Hello::compression is ignored,
// because choosing a codec measures processor time. Elements of up to 16 KiB share frames.
#pragma once

#include "dataplane/transfer/transport.h"
#include "tools/simulator/engine/scheduler.h"
#include "tools/simulator/world/network.h"

namespace penstock::simulator {

// While the object exists, the registered transport "sim" uses this network, for all simulated
// processes. Without such an object, it reaches nobody. One object exists at a time; listeners and
// links must end before it. "auto" prefers "sim" to all other transports.
class SimTransport {
 public:
  SimTransport(Scheduler& scheduler, Network& network);
  SimTransport(const SimTransport&) = delete;
  SimTransport& operator=(const SimTransport&) = delete;
  ~SimTransport();

  // Same as in transfer::Transport. Both need a fiber. The host is always that of the process; 0
  // chooses a port that nobody had before in this simulation.
  absl::StatusOr<std::unique_ptr<transfer::Listener>> Listen(const transfer::ListenOptions& options,
                                                             transfer::Listener::Accept accept);
  absl::StatusOr<std::unique_ptr<transfer::ReceiveLink>> Dial(
      std::string_view address, transfer::DialOptions options,
      std::shared_ptr<transfer::ReceiveEvents> events);

 private:
  Scheduler& scheduler_;
  Network& network_;
  int next_port_ = 20'000;
};

}  // namespace penstock::simulator
