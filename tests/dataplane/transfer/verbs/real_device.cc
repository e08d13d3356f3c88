// SPDX-License-Identifier: Apache-2.0
// Run by tests/rdma in a virtual machine. The arguments are a device with one active port, its
// network interface, and the program `ip`.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "dataplane/transfer/verbs/devices.h"
#include "dataplane/transfer/verbs/port_watch.h"

namespace penstock::transfer::verbs {
namespace {

constexpr int kBoundMs = 60'000;  // only a broken device comes near it
std::string device_name, interface, ip_program;

int SetLink(const char* state) {
  return std::system((ip_program + " link set " + interface + " " + state).c_str());
}

// Waits for the next change of a port; the test fails if there is none.
PortChange NextChange(PortWatch& watch) {
  for (;;) {
    absl::StatusOr<std::optional<PortChange>> change = watch.Next();
    if (!change.ok()) {
      ADD_FAILURE() << change.status();
      return {};
    }
    if (change->has_value()) return **change;
    pollfd ready = {.fd = watch.fd(), .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kBoundMs) != 1) {
      ADD_FAILURE() << "no event of " << device_name;
      return {};
    }
  }
}

TEST(RealDevice, IsListedWithAnActivePort) {
  const absl::StatusOr<std::vector<Device>> devices = ListDevices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  const auto device = std::find_if(devices->begin(), devices->end(),
                                   [](const Device& d) { return d.name == device_name; });
  ASSERT_NE(device, devices->end());
  ASSERT_TRUE(device->status.ok()) << device->status;
  ASSERT_EQ(device->ports.size(), 1u);
  EXPECT_EQ(device->ports[0].state, PortState::kActive);
  EXPECT_FALSE(device->ports[0].gids.empty());
}

TEST(RealDevice, ReportsItsPortDownAndUp) {
  absl::StatusOr<std::unique_ptr<PortWatch>> watch = PortWatch::Open(device_name);
  ASSERT_TRUE(watch.ok()) << watch.status();
  ASSERT_EQ(SetLink("down"), 0);
  const PortChange down = NextChange(**watch);
  EXPECT_EQ(down.port, 1);
  EXPECT_FALSE(down.active);
  ASSERT_EQ(SetLink("up"), 0);
  const PortChange up = NextChange(**watch);
  EXPECT_EQ(up.port, 1);
  EXPECT_TRUE(up.active);
}

}  // namespace
}  // namespace penstock::transfer::verbs

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 4) return 2;
  penstock::transfer::verbs::device_name = argv[1];
  penstock::transfer::verbs::interface = argv[2];
  penstock::transfer::verbs::ip_program = argv[3];
  return RUN_ALL_TESTS();
}
