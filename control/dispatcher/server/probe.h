// SPDX-License-Identifier: Apache-2.0
// Checks whether a process listens at an address.
#pragma once

#include <string>

namespace penstock::control {

// Returns true only if a connection to "host:port" or "[host]:port" is refused at each of its
// addresses that this machine can try: the host is up, and nothing listens. False if a connection
// is accepted or times out (200 ms), or if the address cannot be resolved.
bool PortRefuses(const std::string& address);

}  // namespace penstock::control
