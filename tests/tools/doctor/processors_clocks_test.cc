// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/doctor/fake_probe.h"

namespace penstock::doctor {
namespace {

using ::testing::HasSubstr;

std::optional<Finding> Cpu(const FakeProbe& probe, const std::string& id) {
  return Fired(CheckProcessors(probe), id);
}
std::optional<Finding> Clock(const FakeProbe& probe, const std::string& id) {
  return Fired(CheckClocks(probe), id);
}

TEST(CpuOneCore, FiresIfTheProcessIsBoundToOne) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/proc/self/status"] = "Cpus_allowed_list:\t5";
  EXPECT_TRUE(Cpu(probe, "cpu.one_core"));
}
TEST(CpuOneCore, IsSilentForTwo) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/proc/self/status"] = "Cpus_allowed_list:\t1,5";
  EXPECT_FALSE(Cpu(probe, "cpu.one_core"));
}

TEST(CpuQuota, FiresInAGroupOfVersion2) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/sys/fs/cgroup/user.slice/cpu.max"] = "150000 100000";
  const auto found = Cpu(probe, "cpu.quota");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->what, HasSubstr("1.5 cores"));
  EXPECT_EQ(found->severity, Severity::kWarning);
}
TEST(CpuQuota, FiresInAGroupOfVersion1) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/proc/self/cgroup"] = "2:cpu,cpuacct:/docker/ab12\n0::/";
  probe.files["/sys/fs/cgroup/cpu/docker/ab12/cpu.cfs_quota_us"] = "800000";
  probe.files["/sys/fs/cgroup/cpu/docker/ab12/cpu.cfs_period_us"] = "100000";
  const auto found = Cpu(probe, "cpu.quota");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, Severity::kNote);
}
TEST(CpuQuota, IsSilentWithoutOne) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/sys/fs/cgroup/user.slice/cpu.max"] = "max 100000";
  EXPECT_FALSE(Cpu(probe, "cpu.quota"));
}

TEST(CpuGovernor, FiresIfItHoldsTheLowestClock) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"] = "powersave";
  EXPECT_TRUE(Cpu(probe, "cpu.governor"));
}
TEST(CpuGovernor, IsSilentIfTheProcessorChooses) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"] = "powersave";
  probe.files["/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"] = "intel_pstate";
  EXPECT_FALSE(Cpu(probe, "cpu.governor"));
}

TEST(CpuNumaNodes, FiresForSeveral) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/sys/devices/system/node/online"] = "0-1";
  EXPECT_TRUE(Cpu(probe, "cpu.numa_nodes"));
}
TEST(CpuNumaNodes, IsSilentForOne) {
  EXPECT_FALSE(Cpu(FakeProbe::Healthy(), "cpu.numa_nodes"));
}

TEST(CpuNumaBalancing, FiresIfThereAreSeveralNodes) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/sys/devices/system/node/online"] = "0-1";
  probe.files["/proc/sys/kernel/numa_balancing"] = "1";
  EXPECT_TRUE(Cpu(probe, "cpu.numa_balancing"));
}
TEST(CpuNumaBalancing, IsSilentOnOneNode) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/proc/sys/kernel/numa_balancing"] = "1";
  EXPECT_FALSE(Cpu(probe, "cpu.numa_balancing"));
}

TEST(ClockSource, FiresForASlowOne) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/sys/devices/system/clocksource/clocksource0/current_clocksource"] = "hpet";
  EXPECT_TRUE(Clock(probe, "clock.source"));
}
TEST(ClockSource, IsSilentForTsc) {
  EXPECT_FALSE(Clock(FakeProbe::Healthy(), "clock.source"));
}

TEST(ClockJumped, FiresInEitherDirection) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.clocks.wall_step = absl::Seconds(-2);
  EXPECT_TRUE(Clock(probe, "clock.jumped"));
  probe.clocks.wall_step = absl::Seconds(2);
  EXPECT_TRUE(Clock(probe, "clock.jumped"));
}
TEST(ClockJumped, IsSilentWhileTheClockIsSlewed) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.clocks.wall_step = absl::Microseconds(30);
  EXPECT_FALSE(Clock(probe, "clock.jumped"));
}

TEST(ClockUnsynchronized, FiresWithoutATimeServer) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.clocks.synchronized = false;
  EXPECT_TRUE(Clock(probe, "clock.unsynchronized"));
}
TEST(ClockUnsynchronized, IsSilentWithOne) {
  EXPECT_FALSE(Clock(FakeProbe::Healthy(), "clock.unsynchronized"));
}

}  // namespace
}  // namespace penstock::doctor
