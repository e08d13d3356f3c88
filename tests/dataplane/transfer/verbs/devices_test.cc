// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/verbs/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dataplane/transfer/verbs/library.h"

namespace penstock::transfer::verbs {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A library with one device of two ports. The values that tests vary are global, because the
// functions of a C library have no object.
struct World {
  bool has_list = true;
  bool opens = true;
  int open_contexts = 0;
  int open_lists = 0;
  std::vector<ibv_gid_entry> gids;
};
World world;
ibv_device card;
ibv_context card_context;

ibv_gid_entry Entry(uint32_t port, uint32_t index, ibv_gid_type type, const char* ending) {
  ibv_gid_entry entry = {};
  entry.port_num = port;
  entry.gid_index = index;
  entry.gid_type = type;
  entry.gid.raw[0] = 0xfe;
  entry.gid.raw[1] = 0x80;
  entry.gid.raw[15] = static_cast<uint8_t>(ending[0]);
  return entry;
}

int QueryPort(ibv_context*, uint8_t number, _compat_ibv_port_attr* attributes) {
  auto* port = reinterpret_cast<ibv_port_attr*>(attributes);
  port->state = number == 1 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  port->link_layer = number == 1 ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  port->active_mtu = IBV_MTU_1024;
  port->max_mtu = IBV_MTU_4096;
  port->active_width = 2;   // four lanes
  port->active_speed = 32;  // 25 Gb/s each
  port->gid_tbl_len = 4;
  return 0;
}

ssize_t QueryGidTable(ibv_context*, ibv_gid_entry* entries, size_t max, uint32_t, size_t) {
  if (world.gids.size() > max) return -EINVAL;
  std::copy(world.gids.begin(), world.gids.end(), entries);
  return static_cast<ssize_t>(world.gids.size());
}

Library FakeLibrary() {
  world = {};
  static ibv_device* cards[] = {&card, nullptr};
  return {.get_device_list = [](int* count) -> ibv_device** {
            if (!world.has_list) {
              errno = ENOSYS;
              return nullptr;
            }
            ++world.open_lists;
            *count = 1;
            return cards;
          },
          .free_device_list = [](ibv_device**) { --world.open_lists; },
          .get_device_name = [](ibv_device*) -> const char* { return "mlx5_0"; },
          .open_device = [](ibv_device*) -> ibv_context* {
            if (!world.opens) {
              errno = EACCES;
              return nullptr;
            }
            ++world.open_contexts;
            return &card_context;
          },
          .close_device =
              [](ibv_context*) {
                --world.open_contexts;
                return 0;
              },
          .query_device =
              [](ibv_context*, ibv_device_attr* attributes) {
                std::strcpy(attributes->fw_ver, "28.39.1002");
                attributes->phys_port_cnt = 2;
                return 0;
              },
          .query_port = QueryPort,
          .query_gid_table = QueryGidTable};
}

TEST(Devices, DescribeTheirPorts) {
  const Library library = FakeLibrary();
  absl::StatusOr<std::vector<Device>> devices = ListDevices(library);
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 1u);
  const Device& device = devices->front();
  EXPECT_TRUE(device.status.ok()) << device.status;
  EXPECT_EQ(device.name, "mlx5_0");
  EXPECT_EQ(device.firmware, "28.39.1002");
  ASSERT_EQ(device.ports.size(), 2u);
  EXPECT_EQ(device.ports[0].number, 1);
  EXPECT_EQ(device.ports[0].state, PortState::kActive);
  EXPECT_EQ(device.ports[0].link_layer, LinkLayer::kEthernet);
  EXPECT_EQ(device.ports[0].active_mtu_bytes, 1024);
  EXPECT_EQ(device.ports[0].max_mtu_bytes, 4096);
  EXPECT_EQ(device.ports[0].gigabits_per_s, 100);
  EXPECT_EQ(device.ports[1].state, PortState::kDown);
  EXPECT_EQ(device.ports[1].link_layer, LinkLayer::kInfiniBand);
}

TEST(Devices, GiveEachPortItsOwnGids) {
  const Library library = FakeLibrary();
  world.gids = {Entry(1, 0, IBV_GID_TYPE_ROCE_V1, "\x01"),
                Entry(1, 3, IBV_GID_TYPE_ROCE_V2, "\x02"), Entry(2, 0, IBV_GID_TYPE_IB, "\x03"),
                Entry(9, 0, IBV_GID_TYPE_IB, "\x04")};
  absl::StatusOr<std::vector<Device>> devices = ListDevices(library);
  ASSERT_TRUE(devices.ok()) << devices.status();
  const std::vector<Port>& ports = devices->front().ports;
  ASSERT_EQ(ports[0].gids.size(), 2u);
  EXPECT_EQ(ports[0].gids[0].address, "fe80::1");
  EXPECT_EQ(ports[0].gids[0].type, GidType::kRoceV1);
  EXPECT_EQ(ports[0].gids[1].index, 3);
  EXPECT_EQ(ports[0].gids[1].type, GidType::kRoceV2);
  ASSERT_EQ(ports[1].gids.size(), 1u);
  EXPECT_EQ(ports[1].gids[0].address, "fe80::3");
}

TEST(Devices, NoListAtAllMeansNoVerbs) {
  const Library library = FakeLibrary();
  world.has_list = false;
  const absl::Status status = ListDevices(library).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no device list"));
}

TEST(Devices, OneThatCannotBeOpenedSaysWhy) {
  const Library library = FakeLibrary();
  world.opens = false;
  absl::StatusOr<std::vector<Device>> devices = ListDevices(library);
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ(devices->front().status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(devices->front().status.message()), HasSubstr("Permission denied"));
  EXPECT_THAT(devices->front().ports, IsEmpty());
}

TEST(Devices, ATableOfGidsThatCannotBeReadLeavesNoHalfADevice) {
  const Library library = FakeLibrary();
  world.gids.assign(9, Entry(1, 0, IBV_GID_TYPE_IB, "\x01"));  // more than the port reports
  absl::StatusOr<std::vector<Device>> devices = ListDevices(library);
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->front().status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(devices->front().ports, IsEmpty());
}

TEST(Devices, NothingStaysOpen) {
  const Library library = FakeLibrary();
  ASSERT_TRUE(ListDevices(library).ok());
  EXPECT_EQ(world.open_contexts, 0);
  EXPECT_EQ(world.open_lists, 0);
}

}  // namespace
}  // namespace penstock::transfer::verbs
