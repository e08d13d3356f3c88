// SPDX-License-Identifier: Apache-2.0
// The RDMA devices of this machine, as libibverbs reports them. The library is opened at run time,
// so that a program also starts without it, or on a machine without RDMA. This header does not
// include the library's headers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::transfer::verbs {

enum class PortState { kDown, kInitializing, kArmed, kActive };
enum class LinkLayer { kInfiniBand, kEthernet };
enum class GidType { kInfiniBand, kRoceV1, kRoceV2 };

// An address of a port. `index` is the position of the address in the port's table, as used by
// UCX_IB_GID_INDEX and by the tools of perftest (-x).
struct Gid {
  int index = 0;
  std::string address;  // written as an IPv6 address; IPv4 as ::ffff:a.b.c.d
  GidType type = GidType::kInfiniBand;
};

struct Port {
  int number = 0;  // from 1
  PortState state = PortState::kDown;
  LinkLayer link_layer = LinkLayer::kInfiniBand;
  int active_mtu_bytes = 0;  // MTU of the path, 256 to 4096
  int max_mtu_bytes = 0;
  double gigabits_per_s = 0;  // rate of the trained link; 0: unknown
  std::vector<Gid> gids;      // only those in use
};

struct Device {
  std::string name;
  absl::Status status;  // why it could not be opened or queried; everything else is then empty
  std::string firmware;
  std::vector<Port> ports;
};

// Returns all devices in the library's order; an empty list if there are none. Any thread; opens
// and closes each device. Fails with
//   Unimplemented       this program was built without the headers of libibverbs,
//   NotFound            the library cannot be opened,
//   FailedPrecondition  the library is older than rdma-core 33,
//   Unavailable         the kernel has no RDMA: the library returns no list at all.
absl::StatusOr<std::vector<Device>> ListDevices();

}  // namespace penstock::transfer::verbs
