// SPDX-License-Identifier: Apache-2.0
// The status pages of a trainer's process.
#pragma once

#include <string>

namespace penstock::client {

// Serves "/" and "/metrics" on loopback, from the first call with a port of 0 or more until the
// process ends. An event gives the address, or reports that the port is not available, for example
// because a different rank on this host has it. A missing port is not an error, because reading
// does not depend on the pages. Any thread.
void StartStatusServer(int port, const std::string& token);

}  // namespace penstock::client
