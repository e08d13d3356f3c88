// SPDX-License-Identifier: Apache-2.0
#include "bench/adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/machine.h"
#include "bench/record.h"
#include "tests/tools/doctor/fake_probe.h"

namespace penstock::bench {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

void AddNic(doctor::FakeProbe& probe, const std::string& folder, const std::string& speed,
            const std::string& width) {
  probe.links[folder + "/device"] = "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";
  probe.files[folder + "/device/numa_node"] = "1";
  probe.files[folder + "/device/current_link_speed"] = speed;
  probe.files[folder + "/device/current_link_width"] = width;
}

std::string TextOf(const doctor::FakeProbe& probe, const std::string& interface) {
  return absl::StrJoin(AdaptersOfInterface(probe, interface), "; ",
                       [](std::string* out, const Adapter& one) { *out += Describe(one); });
}

TEST(Adapters, SayHowAnInterfaceIsPluggedIn) {
  doctor::FakeProbe probe;
  AddNic(probe, "/sys/class/net/eth0", "16.0 GT/s PCIe", "16");
  probe.files["/sys/class/net/eth0/speed"] = "100000";
  EXPECT_EQ(TextOf(probe, "eth0"), "eth0 (100 Gb/s, NUMA node 1, PCIe 4.0 x16)");
}

TEST(Adapters, OmitUnknownValues) {
  doctor::FakeProbe probe;
  probe.files["/sys/class/net/veth0/speed"] = "10000";  // made up: no device
  EXPECT_EQ(TextOf(probe, "veth0"), "veth0");
  AddNic(probe, "/sys/class/net/eth0", "Unknown", "0");  // a virtual function
  probe.files["/sys/class/net/eth0/speed"] = "-1";
  probe.files["/sys/class/net/eth0/device/numa_node"] = "-1";
  EXPECT_EQ(TextOf(probe, "eth0"), "eth0");
  EXPECT_EQ(ToJson(AdaptersOfInterface(probe, "eth0")).dump(), R"([{"name":"eth0"}])");
}

TEST(Adapters, OfABondAreItsMembers) {
  doctor::FakeProbe probe;
  probe.files["/sys/class/net/bond0/speed"] = "50000";
  for (const char* lower : {"eth0", "eth1"}) {
    AddNic(probe, absl::StrCat("/sys/class/net/", lower), "8.0 GT/s PCIe", "8");
    probe.files[absl::StrCat("/sys/class/net/", lower, "/speed")] = "25000";
    probe.links[absl::StrCat("/sys/class/net/bond0/lower_", lower)] =
        absl::StrCat("/sys/class/net/", lower);
  }
  EXPECT_EQ(TextOf(probe, "bond0"),
            "bond0 (50 Gb/s); eth0 (25 Gb/s, NUMA node 1, PCIe 3.0 x8); "
            "eth1 (25 Gb/s, NUMA node 1, PCIe 3.0 x8)");
}

TEST(Adapters, OfAnRdmaPortHaveItsRate) {
  doctor::FakeProbe probe;
  AddNic(probe, "/sys/class/infiniband/mlx5_0", "32.0 GT/s PCIe", "16");
  EXPECT_EQ(Describe(AdapterOfPort(probe, "mlx5_0", "mlx5_0:1", 400)),
            "mlx5_0:1 (400 Gb/s, NUMA node 1, PCIe 5.0 x16)");
}

TEST(Machine, IsDescribedWithTheAdaptersOfLinks) {
  Machine machine{.processor = "EPYC", .cores = 8, .numa_nodes = 2};
  EXPECT_THAT(Describe(machine), HasSubstr("8 cores on 2 NUMA nodes"));
  EXPECT_THAT(MachineRecord(machine), Not(HasSubstr("adapters")));
  machine.adapters = {{.name = "eth0", .gigabits_per_s = 100}, {.name = "mlx5_0:1"}};
  EXPECT_THAT(Describe(machine), EndsWith("; over eth0 (100 Gb/s) and mlx5_0:1"));
  EXPECT_THAT(MachineRecord(machine),
              HasSubstr(R"("adapters":[{"gigabits_per_s":100.0,"name":"eth0"},)"));
}

}  // namespace
}  // namespace penstock::bench
