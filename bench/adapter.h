// SPDX-License-Identifier: Apache-2.0
// The hardware of a link in a host, from sysfs: a network interface, or a port of an RDMA device.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/doctor/probe.h"

namespace penstock::bench {

struct Adapter {
  std::string name;           // "eth0", "mlx5_0:1"
  double gigabits_per_s = 0;  // 0: unknown, also in the fields below
  int numa_node = -1;         // -1: unknown
  double pcie_gt_per_s = 0;   // of the PCI Express link, as trained
  int pcie_width = 0;         // lanes
};

// Returns an interface, then the interfaces below it (a bond has some). An interface without a
// device, such as a veth, has only its name, because the rate in its sysfs folder is not real.
std::vector<Adapter> AdaptersOfInterface(const doctor::Probe& probe, const std::string& interface);
// Returns the port of an RDMA device as an adapter called `name`.
Adapter AdapterOfPort(const doctor::Probe& probe, const std::string& device, std::string name,
                      double gigabits_per_s);

// Returns the known fields: "eth0 (100 Gb/s, NUMA node 0, PCIe 4.0 x16)".
std::string Describe(const Adapter& adapter);
// ToJson() returns an array of objects that have the known fields. AdaptersOf() throws
// json::exception if a field has another type.
nlohmann::json ToJson(const std::vector<Adapter>& adapters);
std::vector<Adapter> AdaptersOf(const nlohmann::json& json);

}  // namespace penstock::bench
