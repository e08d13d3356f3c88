// SPDX-License-Identifier: Apache-2.0
// A probe of the machine on which this process runs.
#pragma once

#include <memory>
#include <string>

#include "tools/doctor/probe.h"

namespace penstock::doctor {

// Reads files below `root` ("/" for the machine's own). All other answers come from the kernel and
// the loader.
std::unique_ptr<Probe> MakeMachineProbe(std::string root = "/");

}  // namespace penstock::doctor
