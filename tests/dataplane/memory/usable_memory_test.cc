// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/usable_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace penstock {
namespace {

constexpr int64_t kMachine = int64_t{64} << 30;

// The system files of a machine, in a folder of the test.
class UsableMemoryTest : public ::testing::Test {
 protected:
  UsableMemoryTest() {
    std::string folder = ::testing::TempDir() + "machineXXXXXX";
    root_ = ::mkdtemp(folder.data());
  }
  ~UsableMemoryTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  int64_t Usable() const { return UsableMemoryOf(root_, kMachine); }

  std::string root_;
};

TEST_F(UsableMemoryTest, IsTheMachinesWhereNothingLimitsIt) {
  EXPECT_EQ(Usable(), kMachine) << "no control groups";
  Write("proc/self/cgroup", "0::/user.slice");
  EXPECT_EQ(Usable(), kMachine) << "no such files";
  Write("sys/fs/cgroup/user.slice/memory.max", "max");
  EXPECT_EQ(Usable(), kMachine);
  Write("sys/fs/cgroup/user.slice/memory.max", std::to_string(2 * kMachine));
  EXPECT_EQ(Usable(), kMachine);
  Write("sys/fs/cgroup/user.slice/memory.max", "no number");
  EXPECT_EQ(Usable(), kMachine);
}

TEST_F(UsableMemoryTest, IsTheLeastOfTheGroupAndItsParents) {
  Write("proc/self/cgroup", "0::/pods/one/main");
  Write("sys/fs/cgroup/pods/one/main/memory.max", "8000000");
  EXPECT_EQ(Usable(), 8'000'000);
  Write("sys/fs/cgroup/pods/memory.max", "5000000");
  EXPECT_EQ(Usable(), 5'000'000);
  Write("sys/fs/cgroup/pods/one/memory.max", "6000000");
  Write("sys/fs/cgroup/pods/two/memory.max", "1000000");
  EXPECT_EQ(Usable(), 5'000'000) << "another's limit is not ours";
}

TEST_F(UsableMemoryTest, IsAContainersThatSeesItsGroupAsTheUppermost) {
  Write("proc/self/cgroup", "0::/");
  Write("sys/fs/cgroup/memory.max", "7000000");
  EXPECT_EQ(Usable(), 7'000'000);
  Write("proc/self/cgroup", "0::/../elsewhere");
  EXPECT_EQ(Usable(), 7'000'000);
}

TEST_F(UsableMemoryTest, IsLimitedByTheFirstVersionToo) {
  Write("proc/self/cgroup",
        "12:pids:/job\n5:cpu,memory:/job/step\n1:name=systemd:/job\n0::/unified");
  Write("sys/fs/cgroup/memory/job/step/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(Usable(), kMachine);
  Write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "3000000");
  EXPECT_EQ(Usable(), 3'000'000);
  Write("proc/self/cgroup", "5:memory:/docker/name");
  EXPECT_EQ(Usable(), kMachine);
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "4000000");
  EXPECT_EQ(Usable(), 4'000'000);
}

TEST(UsableMemory, IsKnownHere) {
  EXPECT_GT(UsableMemory(), 0);
  EXPECT_EQ(UsableMemory(), UsableMemory());
}

class UnusedMemoryTest : public UsableMemoryTest {
 protected:
  int64_t Unused() const { return UnusedMemoryOf(root_); }
};

TEST_F(UnusedMemoryTest, IsTheMachinesAvailableMemory) {
  EXPECT_EQ(Unused(), INT64_MAX) << "it cannot be told";
  Write("proc/meminfo", "MemTotal:  8000 kB\nMemFree:  10 kB\nMemAvailable:    3000 kB");
  EXPECT_EQ(Unused(), 3000 * 1024);
}

TEST_F(UnusedMemoryTest, IsTheRestOfTheTightestLimitIncludingFileMemory) {
  Write("proc/meminfo", "MemAvailable: 100000 kB");
  Write("proc/self/cgroup", "0::/pods/one");
  Write("sys/fs/cgroup/pods/one/memory.max", "max");
  Write("sys/fs/cgroup/pods/one/memory.current", "900");
  Write("sys/fs/cgroup/pods/memory.max", "8000");
  Write("sys/fs/cgroup/pods/memory.current", "7500");
  Write("sys/fs/cgroup/pods/memory.stat", "anon 4000\ninactive_file 200\nactive_file 30\nfile 999");
  EXPECT_EQ(Unused(), 730);
  Write("sys/fs/cgroup/pods/one/memory.max", "1000");
  EXPECT_EQ(Unused(), 100);
}

TEST_F(UnusedMemoryTest, IsTheRestOfAVersion1Limit) {
  Write("proc/self/cgroup", "4:memory:/one\n0::/");
  Write("sys/fs/cgroup/memory/one/memory.limit_in_bytes", "5000");
  Write("sys/fs/cgroup/memory/one/memory.usage_in_bytes", "4000");
  Write("sys/fs/cgroup/memory/one/memory.stat", "inactive_file 7\ntotal_inactive_file 70");
  EXPECT_EQ(Unused(), 1070);
}

}  // namespace
}  // namespace penstock
