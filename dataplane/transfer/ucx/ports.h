// SPDX-License-Identifier: Apache-2.0
// Watches which ports of this machine's RDMA devices are down. UCX does not report ports that go
// down. Its timeouts show, seconds later, that a peer is gone, but not the reason.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/transfer/verbs/port_watch.h"

namespace penstock::transfer::ucx {

// One thread at a time.
class Ports {
 public:
  struct Device {
    std::string name;
    std::map<int, bool> active;  // by port, from 1; queried after the watch began
    std::unique_ptr<verbs::PortWatch> watch;
  };
  // A port by UCX's name, "mlx5_0:1", and the reason for its change.
  struct Change {
    std::string port;
    bool active = false;
    std::string reason;
  };

  // Returns all ports that can be watched; none without libibverbs.
  static Ports OfThisMachine();
  explicit Ports(std::vector<Device> devices) : devices_(std::move(devices)) {}

  // Returns the ports whose state has changed since the last call; never waits. A port that went
  // down and came up between two calls counts as unchanged.
  std::vector<Change> Look();

  bool none() const { return devices_.empty(); }
  bool IsDown(std::string_view port) const;
  // Returns true if there are ports and all ports are down.
  bool AllAreDown() const;

 private:
  std::vector<Device> devices_;
};

}  // namespace penstock::transfer::ucx
