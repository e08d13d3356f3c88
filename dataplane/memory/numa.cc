// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/numa.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "control/env/disk.h"

namespace penstock {
namespace {

constexpr int kNone = -1, kSeveral = -2;
constexpr int kMaxNodes = 1024;  // Linux's limit, as distributions configure it
constexpr int kBits = CHAR_BIT * sizeof(unsigned long);

std::atomic<int> node_in_use{kNone};

}  // namespace

int NodeOfPci(const std::string& address) {
  if (address.empty()) return kNone;
  const absl::StatusOr<std::string> text =
      LocalDisk().Read(absl::StrCat("/sys/bus/pci/devices/", address, "/numa_node"));
  int node = kNone;
  return text.ok() && absl::SimpleAtoi(*text, &node) ? node : kNone;
}

void UseMemoryNode(int node) {
  if (node < 0 || node >= kMaxNodes) return;
  int before = kNone;
  if (!node_in_use.compare_exchange_strong(before, node) && before != node) node_in_use = kSeveral;
}

int MemoryNode() {
  const int node = node_in_use.load(std::memory_order_relaxed);
  return node == kSeveral ? kNone : node;
}

void PreferMemoryNode(absl::Span<std::byte> memory) {
  const int node = MemoryNode();
  if (node < 0) return;
  std::array<unsigned long, kMaxNodes / kBits> nodes{};
  nodes[node / kBits] = 1ul << (node % kBits);
  // The kernel reads the bits below `maxnode` - 1.
  ::syscall(SYS_mbind, memory.data(), memory.size(), MPOL_PREFERRED, nodes.data(), kMaxNodes, 0);
}

}  // namespace penstock
