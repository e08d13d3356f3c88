// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/pci.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/doctor/readings.h"

namespace penstock::doctor {
namespace {

constexpr char kBus[] = "/sys/bus/pci/devices/";
constexpr char kRdmaClass[] = "/sys/class/infiniband/";

// Returns "pci0000:3a" and the parts after it; nothing for a path without a host bridge.
std::vector<std::string> Hops(const std::string& path) {
  std::vector<std::string> hops = absl::StrSplit(path, '/', absl::SkipEmpty());
  const auto bridge = std::find_if(hops.begin(), hops.end(), [](const std::string& hop) {
    return absl::StartsWith(hop, "pci");
  });
  hops.erase(hops.begin(), bridge);
  return hops;
}

}  // namespace

PciDevice PciDeviceAt(const Probe& probe, std::string name, const std::string& link) {
  PciDevice device{
      .name = std::move(name),
      .path = probe.Resolve(link).value_or(""),
      .numa_node = static_cast<int>(ReadNumber(probe, link + "/numa_node").value_or(-1))};
  // "16.0 GT/s PCIe". Devices without such a link, such as virtual functions, have "Unknown" and a
  // width of 0.
  const std::vector<std::string> speed = ReadWords(probe, link + "/current_link_speed");
  const int64_t width = ReadNumber(probe, link + "/current_link_width").value_or(0);
  double rate = 0;
  if (!speed.empty() && absl::SimpleAtod(speed[0], &rate) && rate > 0 && width > 0) {
    device.gigatransfers_per_s = rate;
    device.width = static_cast<int>(width);
  }
  return device;
}

std::string DistanceName(Distance distance) {
  switch (distance) {
    case Distance::kSwitch:
      return "one switch (PIX)";
    case Distance::kSwitches:
      return "several switches (PXB)";
    case Distance::kHostBridge:
      return "the host bridge (PHB)";
    case Distance::kNode:
      return "host bridges of one NUMA node (NODE)";
    case Distance::kSystem:
      return "two NUMA nodes (SYS)";
  }
  return "unknown";
}

Distance DistanceBetween(const PciDevice& a, const PciDevice& b) {
  const std::vector<std::string> from = Hops(a.path), to = Hops(b.path);
  size_t common = 0;
  while (common < from.size() && common < to.size() && from[common] == to[common]) ++common;
  if (common == 0) return a.numa_node == b.numa_node ? Distance::kNode : Distance::kSystem;
  if (common == 1) return Distance::kHostBridge;
  // The path from the last common bridge to each device. With one switch it is one hop (a port) on
  // each side; with further switches it is longer.
  const size_t longer = std::max(from.size(), to.size());
  return longer - common <= 2 ? Distance::kSwitch : Distance::kSwitches;
}

std::vector<PciDevice> NvidiaGpus(const Probe& probe) {
  std::set<std::string> addresses;
  for (const std::string& address : probe.List(kBus)) {
    const std::string folder = kBus + address;
    // Class 03: display controllers, 3D controllers among them.
    if (probe.Read(folder + "/vendor") == "0x10de" &&
        absl::StartsWith(probe.Read(folder + "/class").value_or(""), "0x03")) {
      addresses.insert(address);
    }
  }
  for (const std::string& address : probe.List("/proc/driver/nvidia/gpus")) {
    addresses.insert(address);
  }
  std::vector<PciDevice> gpus;
  for (const std::string& address : addresses) {
    gpus.push_back(PciDeviceAt(probe, address, kBus + address));
  }
  return gpus;
}

bool IsHardware(const Probe& probe, const std::string& rdma_device) {
  const std::string folder = absl::StrCat(kRdmaClass, rdma_device);
  if (probe.List(folder).empty()) return true;
  // For rxe, "parent" names its network interface, which may have its own device.
  return probe.Resolve(folder + "/device") && !probe.Read(folder + "/parent");
}

std::vector<PciDevice> RdmaNics(const Probe& probe) {
  std::vector<PciDevice> nics;
  for (const std::string& name : probe.List(kRdmaClass)) {
    PciDevice nic = PciDeviceAt(probe, name, absl::StrCat(kRdmaClass, name, "/device"));
    if (!nic.path.empty() && IsHardware(probe, name)) nics.push_back(std::move(nic));
  }
  return nics;
}

}  // namespace penstock::doctor
