// SPDX-License-Identifier: Apache-2.0
// Needs a machine with two nodes, such as the virtual ones of tests/rdma. Each test runs in a
// child, because a process keeps its node.
#include "dataplane/memory/numa.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "dataplane/memory/device/page_locking.h"
#include "dataplane/memory/huge_pages.h"
#include "dataplane/memory/pool.h"
#include "dataplane/memory/shared_segment.h"
#include "tests/dataplane/memory/fake_device.h"

namespace penstock {
namespace {

constexpr size_t kBytes = 3 * kHugePageBytes + 5 * kPageBytes;

// Returns "0" on a machine without NUMA, else "0-1" or similar.
std::string NodesOnline() {
  std::ifstream file("/sys/devices/system/node/online");
  std::string nodes = "0";
  std::getline(file, nodes);
  return nodes;
}

// Returns whether all pages of `memory` are on that node. move_pages(2) with nodes = nullptr only
// reports.
bool LiesOn(int node, absl::Span<std::byte> memory) {
  std::vector<void*> pages;
  for (size_t at = 0; at < memory.size(); at += kPageBytes) pages.push_back(memory.data() + at);
  std::vector<int> nodes(pages.size(), -1);
  if (::syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, nodes.data(), 0) != 0) {
    return false;
  }
  return nodes == std::vector<int>(pages.size(), node);
}

// Runs the test in a child on processor 0, next to node 0: memory is on node 1 only by request.
bool InAChild(bool (*test)(int node), int node) {
  const pid_t child = ::fork();
  if (child == 0) {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    if (::sched_setaffinity(0, sizeof(first), &first) != 0) ::_exit(2);
    ::_exit(test(node) ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Numa, ASharedSegmentLiesOnTheDevicesNode) {
  if (NodesOnline() == "0") GTEST_SKIP() << "one node";
  for (const int node : {0, 1}) {
    EXPECT_TRUE(InAChild(
        [](int wanted) {
          UseMemoryNode(wanted);
          const absl::StatusOr<SharedSegment> segment = SharedSegment::Create(kBytes);
          return segment.ok() && LiesOn(wanted, segment->memory());
        },
        node));
  }
}

TEST(Numa, AnOwnersSegmentLiesOnTheDevicesNode) {
  if (NodesOnline() == "0") GTEST_SKIP() << "one node";
  for (const int node : {0, 1}) {
    EXPECT_TRUE(InAChild(
        [](int wanted) {
          UseMemoryNode(wanted);
          const absl::StatusOr<SharedSegment> segment =
              SharedSegment::Create(kBytes, SharedSegment::Writers::kOwner);
          return segment.ok() && segment->MakePresent(segment->memory()).ok() &&
                 LiesOn(wanted, segment->memory());
        },
        node));
  }
}

TEST(Numa, ALargeSlotOnTheHeapLiesOnTheDevicesNode) {
  if (NodesOnline() == "0") GTEST_SKIP() << "one node";
  for (const int node : {0, 1}) {
    EXPECT_TRUE(InAChild(
        [](int wanted) {
          UseMemoryNode(wanted);
          const std::shared_ptr<Pool> pool = Pool::Create();
          const absl::StatusOr<Loan> loan = pool->Lend(kBytes);
          if (!loan.ok()) return false;
          std::memset(loan->bytes().data(), 1, kBytes);
          return LiesOn(wanted, loan->bytes().first(kBytes));
        },
        node));
  }
}

// Returns a device on the PCI bus next to that node; empty if there is none.
std::string PciDeviceNextTo(int node) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/bus/pci/devices", none)) {
    if (NodeOfPci(entry.path().filename()) == node) return entry.path().filename();
  }
  return "";
}

TEST(Numa, ASharedSegmentLiesNextToTheDeviceThatIsUsed) {
  if (PciDeviceNextTo(1).empty()) GTEST_SKIP() << "no PCI device is next to a second node";
  EXPECT_TRUE(InAChild(
      [](int wanted) {
        FakeDevice device;
        device.SayPciAddress(PciDeviceNextTo(wanted));
        PageLocking locking(PageLockMode::kAuto, device, CapturedEvents::Make());
        locking.UseDevice(0);
        const absl::StatusOr<SharedSegment> segment = SharedSegment::Create(kBytes);
        return segment.ok() && LiesOn(wanted, segment->memory());
      },
      1));
}

// Checks each device in sysfs: -1 on most machines with one node.
TEST(Numa, TheNodeOfADeviceComesFromSysfs) {
  EXPECT_EQ(NodeOfPci(""), -1);
  EXPECT_EQ(NodeOfPci("ffff:ff:1f.7"), -1);
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/bus/pci/devices", none)) {
    std::ifstream file(entry.path() / "numa_node");
    int node = -1;
    file >> node;
    EXPECT_EQ(NodeOfPci(entry.path().filename()), node) << entry.path();
  }
}

TEST(Numa, WithDevicesOfTwoNodesThereIsNoPreference) {
  EXPECT_TRUE(InAChild(
      [](int) {
        const bool none = MemoryNode() == -1;
        UseMemoryNode(-1);
        UseMemoryNode(1);
        UseMemoryNode(-1);
        UseMemoryNode(1);
        const bool one = MemoryNode() == 1;
        UseMemoryNode(0);
        const bool both = MemoryNode() == -1;
        UseMemoryNode(1);
        return none && one && both && MemoryNode() == -1;
      },
      0));
}

TEST(Numa, ANodeThatIsNotThereIsNoMatter) {
  EXPECT_TRUE(InAChild(
      [](int) {
        UseMemoryNode(63);
        const absl::StatusOr<SharedSegment> segment = SharedSegment::Create(kBytes);
        return segment.ok() && segment->memory()[kBytes - 1] == std::byte{0};
      },
      0));
}

}  // namespace
}  // namespace penstock
