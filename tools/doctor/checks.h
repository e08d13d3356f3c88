// SPDX-License-Identifier: Apache-2.0
// The checks: pure functions from what a probe shows to findings, one file per
// subject. docs/doctor.md lists every finding.
#pragma once

#include <vector>

#include "tools/doctor/finding.h"
#include "tools/doctor/probe.h"

namespace penstock::doctor {

std::vector<Finding> CheckRdma(const Probe& probe);        // devices, ports, GIDs
std::vector<Finding> CheckMemory(const Probe& probe);      // limits, pages, what shm needs
std::vector<Finding> CheckUcx(const Probe& probe);         // the library and its modules
std::vector<Finding> CheckGpu(const Probe& probe);         // driver, peer memory, distance
std::vector<Finding> CheckNetwork(const Probe& probe);     // TCP and open files
std::vector<Finding> CheckProcessors(const Probe& probe);  // cores, quota, governor, NUMA
std::vector<Finding> CheckClocks(const Probe& probe);

// Whether the UCX that is there has its module for CUDA.
bool UcxKnowsCuda(const Probe& probe);

// All of them, the worst first; among equals in the order above.
std::vector<Finding> Examine(const Probe& probe);

}  // namespace penstock::doctor
