// SPDX-License-Identifier: Apache-2.0
// Whether anybody listens at an address.
#pragma once

#include <string>

namespace penstock::control {

// True only if a connection to "host:port" or "[host]:port" is refused: the host is there, and
// nobody listens, at any of its addresses that this machine can try. False when it is accepted,
// times out (200 ms), or the address means nothing here.
bool PortRefuses(const std::string& address);

}  // namespace penstock::control
