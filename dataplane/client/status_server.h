// SPDX-License-Identifier: Apache-2.0
// What a trainer's process shows of its reading.
#pragma once

#include <string>

namespace penstock::client {

// From the first call with a port of 0 or more on, "/" and "/metrics" on loopback, until
// the process ends. An event says where; one that cannot be had (another rank of this host
// has it) is an event too, and no error: reading does not depend on it. Any thread.
void StartStatusServer(int port, const std::string& token);

}  // namespace penstock::client
