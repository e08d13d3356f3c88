// SPDX-License-Identifier: Apache-2.0
// Checks whether a process listens at an address.
#pragma once

#include <string>

namespace penstock::control {

// Returns true only if every address of "host:port" or "[host]:port" that this machine can try
// refuses a connection: then the host is up, and no process listens. False if a connection is
// accepted or times out (200 ms), or if the name cannot be resolved.
bool PortRefuses(const std::string& address);

}  // namespace penstock::control
