// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/doctor/fake_probe.h"

namespace penstock::doctor {
namespace {

using ::testing::HasSubstr;

constexpr char kStatus[] = "/proc/self/status";
constexpr char kAllCapabilities[] = "CapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-7";

std::optional<Finding> Memory(const FakeProbe& probe, const std::string& id) {
  return Fired(CheckMemory(probe), id);
}

FakeProbe LocksOnly(uint64_t bytes) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.locked = {bytes, bytes};
  return probe;
}

TEST(MemoryMemlock, FiresBelowAPoolsNeeds) {
  const auto found = Memory(LocksOnly(8 << 20), "memory.memlock");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, Severity::kError);
  EXPECT_THAT(found->what, HasSubstr("8 MiB"));
  EXPECT_THAT(found->why, HasSubstr("512 MiB"));
}
TEST(MemoryMemlock, IsANoteWithoutANic) {
  FakeProbe probe = LocksOnly(8 << 20);
  probe.RemoveNic();
  const auto found = Memory(probe, "memory.memlock");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, Severity::kNote);
}
TEST(MemoryMemlock, FiresForRootInAUserNamespace) {
  FakeProbe probe = LocksOnly(8 << 20);
  probe.files[kStatus] = kAllCapabilities;
  probe.files["/proc/self/uid_map"] = "0 100000 65536";
  EXPECT_TRUE(Memory(probe, "memory.memlock"));
}
TEST(MemoryMemlock, IsSilentIfThereIsEnough) {
  EXPECT_FALSE(Memory(LocksOnly(512 << 20), "memory.memlock"));
}
TEST(MemoryMemlock, IsSilentWhenMemoryMayBeLocked) {
  FakeProbe probe = LocksOnly(8 << 20);
  probe.files[kStatus] = kAllCapabilities;
  EXPECT_FALSE(Memory(probe, "memory.memlock"));
}

TEST(MemoryMemfd, FiresIfNoneCanBeMade) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.memfd = absl::PermissionDeniedError("memfd_create fails");
  const auto found = Memory(probe, "memory.memfd");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->blocks);
  EXPECT_EQ(found->protocols, std::vector<std::string>{"shm"});
}
TEST(MemoryMemfd, IsSilentIfOneCan) {
  EXPECT_FALSE(Memory(FakeProbe::Healthy(), "memory.memfd"));
}

TEST(MemoryPidfd, FiresIfNoneCanBeHad) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.pidfd = absl::UnimplementedError("pidfd_open fails");
  EXPECT_TRUE(Memory(probe, "memory.pidfd"));
}
TEST(MemoryPidfd, IsSilentIfOneCan) {
  EXPECT_FALSE(Memory(FakeProbe::Healthy(), "memory.pidfd"));
}

TEST(MemorySmallDevShm, FiresForTheSizeOfAContainer) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.dev_shm_bytes = 64 << 20;
  const auto found = Memory(probe, "memory.small_dev_shm");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->what, HasSubstr("64 MiB"));
}
TEST(MemorySmallDevShm, FiresWithoutTheFolder) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.dev_shm_bytes.reset();
  EXPECT_TRUE(Memory(probe, "memory.small_dev_shm"));
}
TEST(MemorySmallDevShm, IsSilentIfThereIsEnough) {
  EXPECT_FALSE(Memory(FakeProbe::Healthy(), "memory.small_dev_shm"));
}

TEST(MemoryNoHugepages, FiresIfNoneCanBeMade) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.huge_page = absl::InvalidArgumentError("madvise(MADV_COLLAPSE) fails");
  const auto found = Memory(probe, "memory.no_hugepages");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->what, HasSubstr("madvise(MADV_COLLAPSE) fails"));
}
TEST(MemoryNoHugepages, IsSilentIfOneCanBeMade) {
  EXPECT_FALSE(Memory(FakeProbe::Healthy(), "memory.no_hugepages"));
}

TEST(MemoryPtraceScope, FiresIfReadingOthersIsForbidden) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/proc/sys/kernel/yama/ptrace_scope"] = "1";
  const auto found = Memory(probe, "memory.ptrace_scope");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->why, HasSubstr("Penstock's shm is not affected"));
}
TEST(MemoryPtraceScope, FiresForRootTooIfNobodyMay) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files[kStatus] = kAllCapabilities;
  probe.files["/proc/sys/kernel/yama/ptrace_scope"] = "3";
  EXPECT_TRUE(Memory(probe, "memory.ptrace_scope"));
}
TEST(MemoryPtraceScope, IsSilentWithoutYama) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.Remove("/proc/sys/kernel/yama");
  EXPECT_FALSE(Memory(probe, "memory.ptrace_scope"));
}

TEST(MemoryGroupLimit, FiresWithTheTightestAbove) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/proc/self/cgroup"] = "0::/pods/trainer";
  probe.files["/sys/fs/cgroup/pods/trainer/memory.max"] = "max";
  probe.files["/sys/fs/cgroup/pods/memory.max"] = "17179869184";
  const auto found = Memory(probe, "memory.group_limit");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->what, HasSubstr("16 GiB"));
  EXPECT_EQ(found->severity, Severity::kNote);
}
TEST(MemoryGroupLimit, IsAWarningIfPoolsHardlyFit) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.files["/proc/self/cgroup"] = "9:name=systemd:/\n4:memory:/docker/ab12\n0::/";
  probe.files["/sys/fs/cgroup/memory/memory.limit_in_bytes"] = "1073741824";  // in a container
  const auto found = Memory(probe, "memory.group_limit");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, Severity::kWarning);
}
TEST(MemoryGroupLimit, IsSilentWithoutALimit) {
  FakeProbe probe = FakeProbe::Healthy();
  EXPECT_FALSE(Memory(probe, "memory.group_limit"));
  probe.files["/proc/self/cgroup"] = "4:memory:/";
  probe.files["/sys/fs/cgroup/memory/memory.limit_in_bytes"] = "9223372036854771712";
  EXPECT_FALSE(Memory(probe, "memory.group_limit"));
}

}  // namespace
}  // namespace penstock::doctor
