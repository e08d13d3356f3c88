// SPDX-License-Identifier: Apache-2.0
// Where devices sit on the PCI bus, from sysfs.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/probe.h"

namespace penstock::doctor {

// How far two devices are apart, nearest first, in the terms of `nvidia-smi topo`.
enum class Distance {
  kSwitch,      // PIX: through one switch
  kSwitches,    // PXB: through several, without the host bridge
  kHostBridge,  // PHB: through the processor's host bridge
  kNode,        // NODE: host bridges of one NUMA node
  kSystem,      // SYS: from one NUMA node to another
};
std::string DistanceName(Distance distance);

struct PciDevice {
  std::string name;    // "0000:3b:00.0" or "mlx5_0"
  std::string path;    // in sysfs, all links resolved
  int numa_node = -1;  // -1: not known
  // Of the PCI Express link, as it is trained; 0: not known.
  double gigatransfers_per_s = 0;
  int width = 0;  // lanes
};

// What a device's folder in sysfs, or a link to it, says of it.
PciDevice PciDeviceAt(const Probe& probe, std::string name, const std::string& link);

Distance DistanceBetween(const PciDevice& a, const PciDevice& b);

// Those on the bus and those the driver knows, each once; without its path if sysfs
// does not show it.
std::vector<PciDevice> NvidiaGpus(const Probe& probe);
// Whether an RDMA device is hardware, and not made out of a network interface by
// rxe or siw. True if sysfs does not show the device.
bool IsHardware(const Probe& probe, const std::string& rdma_device);
// RDMA devices that are.
std::vector<PciDevice> RdmaNics(const Probe& probe);

}  // namespace penstock::doctor
