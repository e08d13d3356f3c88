// SPDX-License-Identifier: Apache-2.0
// The machine on which the figures were measured.
#pragma once

#include <string>
#include <vector>

#include "bench/adapter.h"

namespace penstock::bench {

struct Machine {
  std::string processor, kernel, congestion_control, when;
  int cores = 0;
  double memory_gib = 0;
  double load1 = 0;  // before the bench
  int numa_nodes = 1;
  std::vector<Adapter> adapters;  // of the measured links; ThisMachine() has none
};

Machine ThisMachine();
// Returns "AMD EPYC, 2 cores, 23 GiB, kernel 6.1, TCP cubic, load 0.10, 2026-01-02T03:04:05Z", and
// with adapters also "; over eth0 (100 Gb/s, NUMA node 0, PCIe 4.0 x16)".
std::string Describe(const Machine& machine);

// Returns the version of this program, as `penstock version` prints it.
std::string Version();

}  // namespace penstock::bench
