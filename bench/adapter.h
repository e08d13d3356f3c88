// SPDX-License-Identifier: Apache-2.0
// What a link goes through in a host, as sysfs tells it: a network interface, or a port of an RDMA
// device.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/doctor/probe.h"

namespace penstock::bench {

struct Adapter {
  std::string name;           // "eth0", "mlx5_0:1"
  double gigabits_per_s = 0;  // 0: not known, as in what follows
  int numa_node = -1;         // -1: not known
  double pcie_gt_per_s = 0;   // of the PCI Express link as it is trained
  int pcie_width = 0;         // lanes
};

// An interface, then those that it is made of, as a bond is. One that stands for no device, as a
// veth, has only its name: the rate that it names is made up.
std::vector<Adapter> AdaptersOfInterface(const doctor::Probe& probe, const std::string& interface);
// A port of an RDMA device, called `name`.
Adapter AdapterOfPort(const doctor::Probe& probe, const std::string& device, std::string name,
                      double gigabits_per_s);

// "eth0 (100 Gb/s, NUMA node 0, PCIe 4.0 x16)", of what is known.
std::string Describe(const Adapter& adapter);
// An array of objects that have the fields of what is known. AdaptersOf() throws json::exception
// where one is of another type.
nlohmann::json ToJson(const std::vector<Adapter>& adapters);
std::vector<Adapter> AdaptersOf(const nlohmann::json& json);

}  // namespace penstock::bench
