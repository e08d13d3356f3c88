// SPDX-License-Identifier: Apache-2.0
#include "bench/adapter.h"

#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/doctor/pci.h"
#include "tools/doctor/readings.h"

namespace penstock::bench {
namespace {

constexpr char kLower[] = "lower_";  // links to the interfaces below this one

// Returns "PCIe 4.0" for the rate of a lane; the rate itself if it is not one of these.
std::string PcieName(double gt_per_s) {
  constexpr double kRates[] = {2.5, 5, 8, 16, 32, 64};
  for (size_t i = 0; i < std::size(kRates); ++i) {
    if (gt_per_s == kRates[i]) return absl::StrCat("PCIe ", i + 1, ".0");
  }
  return absl::StrCat("PCIe ", gt_per_s, " GT/s");
}

Adapter AdapterAt(const doctor::Probe& probe, std::string name, const std::string& folder) {
  const doctor::PciDevice device = doctor::PciDeviceAt(probe, name, folder + "/device");
  return {.name = std::move(name),
          .numa_node = device.numa_node,
          .pcie_gt_per_s = device.gigatransfers_per_s,
          .pcie_width = device.width};
}

}  // namespace

std::vector<Adapter> AdaptersOfInterface(const doctor::Probe& probe, const std::string& interface) {
  const std::string folder = absl::StrCat("/sys/class/net/", interface);
  std::vector<Adapter> adapters = {AdapterAt(probe, interface, folder)};
  bool of_a_device = probe.Resolve(folder + "/device").has_value();
  for (const std::string& entry : probe.List(folder)) {
    if (!absl::StartsWith(entry, kLower)) continue;
    of_a_device = true;
    for (Adapter& lower : AdaptersOfInterface(probe, entry.substr(sizeof kLower - 1))) {
      adapters.push_back(std::move(lower));
    }
  }
  const int64_t megabits = doctor::ReadNumber(probe, folder + "/speed").value_or(0);
  if (of_a_device && megabits > 0) adapters[0].gigabits_per_s = static_cast<double>(megabits) / 1e3;
  return adapters;
}

Adapter AdapterOfPort(const doctor::Probe& probe, const std::string& device, std::string name,
                      double gigabits_per_s) {
  Adapter adapter =
      AdapterAt(probe, std::move(name), absl::StrCat("/sys/class/infiniband/", device));
  adapter.gigabits_per_s = gigabits_per_s;
  return adapter;
}

std::string Describe(const Adapter& adapter) {
  std::vector<std::string> known;
  if (adapter.gigabits_per_s > 0) known.push_back(absl::StrCat(adapter.gigabits_per_s, " Gb/s"));
  if (adapter.numa_node >= 0) known.push_back(absl::StrCat("NUMA node ", adapter.numa_node));
  if (adapter.pcie_width > 0) {
    known.push_back(absl::StrCat(PcieName(adapter.pcie_gt_per_s), " x", adapter.pcie_width));
  }
  if (known.empty()) return adapter.name;
  return absl::StrCat(adapter.name, " (", absl::StrJoin(known, ", "), ")");
}

nlohmann::json ToJson(const std::vector<Adapter>& adapters) {
  auto array = nlohmann::json::array();
  for (const Adapter& adapter : adapters) {
    nlohmann::json object = {{"name", adapter.name}};
    if (adapter.gigabits_per_s > 0) object["gigabits_per_s"] = adapter.gigabits_per_s;
    if (adapter.numa_node >= 0) object["numa_node"] = adapter.numa_node;
    if (adapter.pcie_width > 0) {
      object["pcie_gt_per_s"] = adapter.pcie_gt_per_s;
      object["pcie_width"] = adapter.pcie_width;
    }
    array.push_back(std::move(object));
  }
  return array;
}

std::vector<Adapter> AdaptersOf(const nlohmann::json& json) {
  std::vector<Adapter> adapters;
  for (const nlohmann::json& object : json) {
    adapters.push_back({.name = object.at("name"),
                        .gigabits_per_s = object.value("gigabits_per_s", 0.0),
                        .numa_node = object.value("numa_node", -1),
                        .pcie_gt_per_s = object.value("pcie_gt_per_s", 0.0),
                        .pcie_width = object.value("pcie_width", 0)});
  }
  return adapters;
}

}  // namespace penstock::bench
