// SPDX-License-Identifier: Apache-2.0
// The machine that this process runs on.
#pragma once

#include <memory>
#include <string>

#include "tools/doctor/probe.h"

namespace penstock::doctor {

// Files are taken below `root` ("/" for the machine's own); all else is asked of
// the kernel and the loader.
std::unique_ptr<Probe> MakeMachineProbe(std::string root = "/");

}  // namespace penstock::doctor
