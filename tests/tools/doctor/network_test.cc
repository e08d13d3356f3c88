// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/doctor/fake_probe.h"

namespace penstock::doctor {
namespace {

using ::testing::HasSubstr;

constexpr char kDefault[] = "/proc/sys/net/ipv4/tcp_congestion_control";
constexpr char kAvailable[] = "/proc/sys/net/ipv4/tcp_available_congestion_control";
constexpr char kAllowed[] = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

std::optional<Finding> Network(const FakeProbe& probe, const std::string& id) {
  return Fired(CheckNetwork(probe), id);
}

TEST(NetNoCubic, FiresIfTheKernelHasNone) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files[kAvailable] = "reno bbr";
  probe.files[kDefault] = "bbr";
  const auto found = Network(probe, "net.no_cubic");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->remedy, HasSubstr("modprobe tcp_cubic"));
}
TEST(NetNoCubic, FiresIfThisUserMayNotHaveIt) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files[kDefault] = "bbr";
  probe.files[kAllowed] = "reno bbr";
  const auto found = Network(probe, "net.no_cubic");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->remedy, HasSubstr("tcp_allowed_congestion_control"));
}
TEST(NetNoCubic, IsSilentForNetworkAdministrators) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files[kDefault] = "bbr";
  probe.files[kAllowed] = "reno bbr";
  probe.files["/proc/self/status"] = "CapEff:\t0000000000001000";
  EXPECT_FALSE(Network(probe, "net.no_cubic"));
}

TEST(NetDefaultCongestion, FiresForAnotherThanCubic) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files[kDefault] = "bbr";
  const auto found = Network(probe, "net.default_congestion");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, Severity::kNote);
}
TEST(NetDefaultCongestion, IsSilentForCubic) {
  EXPECT_FALSE(Network(FakeProbe::Healthy(), "net.default_congestion"));
}

TEST(NetSomaxconn, FiresForAShortQueue) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/proc/sys/net/core/somaxconn"] = "128";
  EXPECT_TRUE(Network(probe, "net.somaxconn"));
}
TEST(NetSomaxconn, IsSilentForALongOne) {
  EXPECT_FALSE(Network(FakeProbe::Healthy(), "net.somaxconn"));
}

TEST(NetSmallBuffers, FiresIfOneOfThemStaysSmall) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/proc/sys/net/ipv4/tcp_wmem"] = "4096 16384 262144";
  const auto found = Network(probe, "net.small_buffers");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->what, HasSubstr("256 KiB to send"));
}
TEST(NetSmallBuffers, IsSilentIfBothGrow) {
  EXPECT_FALSE(Network(FakeProbe::Healthy(), "net.small_buffers"));
}

TEST(NetOpenFiles, FiresForALowLimit) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.open_files = {1024, 1024};
  const auto found = Network(probe, "net.open_files");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, Severity::kWarning);
}
TEST(NetOpenFiles, IsANoteIfTheProcessCanRaiseIt) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.open_files = {1024, 524288};
  const auto found = Network(probe, "net.open_files");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, Severity::kNote);
}
TEST(NetOpenFiles, IsSilentForAHighLimit) {
  EXPECT_FALSE(Network(FakeProbe::Healthy(), "net.open_files"));
}

}  // namespace
}  // namespace penstock::doctor
