// SPDX-License-Identifier: Apache-2.0
// The checks: pure functions from a probe's readings to findings, one file per subject.
// docs/doctor.md lists every finding.
#pragma once

#include <vector>

#include "tools/doctor/finding.h"
#include "tools/doctor/probe.h"

namespace penstock::doctor {

std::vector<Finding> CheckRdma(const Probe& probe);        // devices, ports, GIDs
std::vector<Finding> CheckMemory(const Probe& probe);      // limits, pages, needs of shm
std::vector<Finding> CheckUcx(const Probe& probe);         // the library and its modules
std::vector<Finding> CheckGpu(const Probe& probe);         // driver, peer memory, distance
std::vector<Finding> CheckNetwork(const Probe& probe);     // TCP and open files
std::vector<Finding> CheckProcessors(const Probe& probe);  // cores, quota, governor, NUMA
std::vector<Finding> CheckClocks(const Probe& probe);

// Returns whether the installed UCX has its module for CUDA.
bool UcxKnowsCuda(const Probe& probe);

// Runs all checks. The worst finding comes first; equal ones keep the order above.
std::vector<Finding> Examine(const Probe& probe);

}  // namespace penstock::doctor
