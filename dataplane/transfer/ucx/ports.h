// SPDX-License-Identifier: Apache-2.0
// Which ports of this machine's RDMA devices are down. UCX does not say: it finds out by
// time-outs of its own, seconds later, and then knows that a peer is gone, not why.
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
    std::map<int, bool> active;  // by port, from 1; as of some time after the watch began
    std::unique_ptr<verbs::PortWatch> watch;
  };
  // A port as UCX names it, "mlx5_0:1", and why it changed, in words.
  struct Change {
    std::string port;
    bool active = false;
    std::string reason;
  };

  // All that can be watched; none where there is no libibverbs.
  static Ports OfThisMachine();
  explicit Ports(std::vector<Device> devices) : devices_(std::move(devices)) {}

  // Ports that are not as they were at the last look; never waits. What went down and came
  // up in between has not changed.
  std::vector<Change> Look();

  bool none() const { return devices_.empty(); }
  bool IsDown(std::string_view port) const;
  // And there are some.
  bool AllAreDown() const;

 private:
  std::vector<Device> devices_;
};

}  // namespace penstock::transfer::ucx
