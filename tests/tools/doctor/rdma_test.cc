// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/doctor/fake_probe.h"

namespace penstock::doctor {
namespace {

namespace verbs = transfer::verbs;
using ::testing::HasSubstr;

std::optional<Finding> Rdma(const FakeProbe& probe, const std::string& id) {
  return Fired(CheckRdma(probe), id);
}

// A machine without a list of devices, and without one in the kernel.
FakeProbe NoRdma(const absl::Status& why) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.RemoveNic();
  probe.devices = why;
  return probe;
}

TEST(RdmaNoVerbs, FiresWithoutAListOfDevices) {
  const auto found = Rdma(NoRdma(absl::UnavailableError("no list")), "rdma.no_verbs");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, Severity::kNote);  // a machine without a NIC is fine
  EXPECT_TRUE(found->blocks);
}
TEST(RdmaNoVerbs, IsAnErrorIfTheKernelHasADevice) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.devices = absl::UnavailableError("no list");
  const auto found = Rdma(probe, "rdma.no_verbs");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, Severity::kError);
  EXPECT_THAT(found->what, HasSubstr("mlx5_0"));
}
TEST(RdmaNoVerbs, IsSilentWithADevice) {
  EXPECT_FALSE(Rdma(FakeProbe::Healthy(), "rdma.no_verbs"));
}

TEST(RdmaNoLibrary, FiresIfItCannotBeOpened) {
  EXPECT_TRUE(Rdma(NoRdma(absl::NotFoundError("libibverbs.so.1: no")), "rdma.no_library"));
}
TEST(RdmaNoLibrary, IsSilentIfTheLibraryAnswers) {
  EXPECT_FALSE(Rdma(NoRdma(absl::UnavailableError("no list")), "rdma.no_library"));
}

TEST(RdmaBuiltWithoutVerbs, FiresInSuchABuild) {
  EXPECT_TRUE(Rdma(NoRdma(absl::UnimplementedError("no headers")), "rdma.built_without_verbs"));
}
TEST(RdmaBuiltWithoutVerbs, IsSilentInAnother) {
  EXPECT_FALSE(Rdma(FakeProbe::Healthy(), "rdma.built_without_verbs"));
}

TEST(RdmaNoDevice, FiresIfTheListIsEmpty) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.RemoveNic();
  const auto found = Rdma(probe, "rdma.no_device");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, Severity::kNote);
}
TEST(RdmaNoDevice, IsSilentWithADevice) {
  EXPECT_FALSE(Rdma(FakeProbe::Healthy(), "rdma.no_device"));
}

TEST(RdmaNoProvider, FiresForADeviceThatTheLibraryDoesNotList) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/sys/class/infiniband/mlx5_1/node_type"] = "1: CA";
  const auto found = Rdma(probe, "rdma.no_provider");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->what, HasSubstr("mlx5_1"));
}
TEST(RdmaNoProvider, IsSilentIfKernelAndLibraryAgree) {
  EXPECT_FALSE(Rdma(FakeProbe::Healthy(), "rdma.no_provider"));
}

TEST(RdmaCannotOpen, FiresWithTheReason) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.nic() = {.name = "mlx5_0",
                 .status = absl::PermissionDeniedError("it cannot be opened: EACCES"),
                 .firmware = "",
                 .ports = {}};
  const auto found = Rdma(probe, "rdma.cannot_open");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->what, HasSubstr("EACCES"));
  EXPECT_FALSE(Rdma(probe, "rdma.no_active_port"));  // unknown
}
TEST(RdmaCannotOpen, IsSilentForADeviceThatAnswers) {
  EXPECT_FALSE(Rdma(FakeProbe::Healthy(), "rdma.cannot_open"));
}

TEST(RdmaNoActivePort, FiresIfAllAreDown) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.port().state = verbs::PortState::kInitializing;
  const auto found = Rdma(probe, "rdma.no_active_port");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, Severity::kError);
}
TEST(RdmaNoActivePort, IsSilentIfOneIsUp) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.nic().ports.push_back({.number = 2, .state = verbs::PortState::kDown, .gids = {}});
  EXPECT_FALSE(Rdma(probe, "rdma.no_active_port"));
}

TEST(RdmaPortDown, FiresForEachPortThatIsNotActive) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.nic().ports.push_back({.number = 2, .state = verbs::PortState::kDown, .gids = {}});
  const auto found = Rdma(probe, "rdma.port_down");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, "mlx5_0 port 2 is DOWN.");
}
TEST(RdmaPortDown, IsSilentIfAllAreActive) {
  EXPECT_FALSE(Rdma(FakeProbe::Healthy(), "rdma.port_down"));
}

TEST(RdmaSmallMtu, FiresBelowThePortsMaximum) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.port().active_mtu_bytes = 1024;
  const auto found = Rdma(probe, "rdma.small_mtu");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->what, HasSubstr("1024"));
}
TEST(RdmaSmallMtu, IsSilentAtTheLargestOfThePort) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.port().active_mtu_bytes = probe.port().max_mtu_bytes = 2048;
  EXPECT_FALSE(Rdma(probe, "rdma.small_mtu"));
}

TEST(RdmaNoRoceV2, FiresForEthernetWithVersion1Alone) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.port().gids.front().type = verbs::GidType::kRoceV1;
  EXPECT_TRUE(Rdma(probe, "rdma.no_roce_v2"));
}
TEST(RdmaNoRoceV2, IsSilentOnInfiniBand) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.port().link_layer = verbs::LinkLayer::kInfiniBand;
  probe.port().gids.front().type = verbs::GidType::kInfiniBand;
  EXPECT_FALSE(Rdma(probe, "rdma.no_roce_v2"));
}

TEST(RdmaSoftwareDevice, FiresForOneWithoutHardware) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.links.erase("/sys/class/infiniband/mlx5_0/device");
  EXPECT_TRUE(Rdma(probe, "rdma.software_device"));
}
TEST(RdmaSoftwareDevice, FiresForRxeOverAnInterfaceThatIsHardware) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/sys/class/infiniband/mlx5_0/parent"] = "eth0";
  EXPECT_TRUE(Rdma(probe, "rdma.software_device"));
}
TEST(RdmaSoftwareDevice, IsSilentForANic) {
  EXPECT_FALSE(Rdma(FakeProbe::Healthy(), "rdma.software_device"));
}

TEST(RdmaSoftwareIpv4Gid, FiresAndNamesTheGidToTake) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.links.erase("/sys/class/infiniband/mlx5_0/device");
  probe.port().gids.push_back(
      {.index = 5, .address = "fd00:1::1", .type = verbs::GidType::kRoceV2});
  const auto found = Rdma(probe, "rdma.software_ipv4_gid");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->remedy, HasSubstr("UCX_IB_GID_INDEX=5"));
}
TEST(RdmaSoftwareIpv4Gid, IsSilentForANic) {
  EXPECT_FALSE(Rdma(FakeProbe::Healthy(), "rdma.software_ipv4_gid"));
}

TEST(Rdma, ADeviceIsDescribedAsIbvDevinfoWould) {
  const auto found = Rdma(FakeProbe::Healthy(), "rdma.device");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what,
            "mlx5_0, firmware 28.39.1002: port 1 ACTIVE, Ethernet, 400 Gb/s, MTU 4096 of 4096, "
            "GIDs 3 ::ffff:10.0.0.1 (RoCE v2).");
}

}  // namespace
}  // namespace penstock::doctor
