// SPDX-License-Identifier: Apache-2.0
// Places of devices on the PCI bus, from sysfs.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/probe.h"

namespace penstock::doctor {

// Distance between two devices, nearest first, with the names of `nvidia-smi topo`.
enum class Distance {
  kSwitch,      // PIX: through one switch
  kSwitches,    // PXB: through several switches, without the host bridge
  kHostBridge,  // PHB: through the processor's host bridge
  kNode,        // NODE: host bridges of one NUMA node
  kSystem,      // SYS: from one NUMA node to another
};
std::string DistanceName(Distance distance);

struct PciDevice {
  std::string name;    // "0000:3b:00.0" or "mlx5_0"
  std::string path;    // in sysfs, with all links resolved
  int numa_node = -1;  // -1: unknown
  // The PCI Express link, as trained; 0: unknown.
  double gigatransfers_per_s = 0;
  int width = 0;  // lanes
};

// Reads the device from `link`: its folder in sysfs, or a symbolic link to the folder.
PciDevice PciDeviceAt(const Probe& probe, std::string name, const std::string& link);

Distance DistanceBetween(const PciDevice& a, const PciDevice& b);

// Returns the GPUs on the bus and the GPUs that the driver knows, each once. `path` is empty if
// sysfs does not show the GPU.
std::vector<PciDevice> NvidiaGpus(const Probe& probe);
// Returns whether an RDMA device is hardware. rxe and siw make devices out of network interfaces.
// True if sysfs does not show the device.
bool IsHardware(const Probe& probe, const std::string& rdma_device);
// Returns the RDMA devices that are hardware.
std::vector<PciDevice> RdmaNics(const Probe& probe);

}  // namespace penstock::doctor
