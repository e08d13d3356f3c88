// SPDX-License-Identifier: Apache-2.0
// Tells addresses of the Internet from addresses inside a machine, a network or a cloud.
#pragma once

#include <sys/socket.h>

namespace penstock::remote {

// Returns false for addresses that are not globally reachable (RFC 6890 and its registries): this
// machine, private, shared and link-local networks, multicast, and reserved ranges. This includes
// the metadata services of clouds: 169.254.169.254, fd00:ec2::254, and 168.63.129.16 of Azure,
// which is in a public range. IPv6 addresses that contain an IPv4 address (mapped, NAT64, 6to4) are
// judged by that address. False for other address families.
bool IsPublicAddress(const sockaddr& address);

// Judges an address in text form, such as "93.184.216.34" or "::1". False if it is none.
bool IsPublicAddress(const char* text);

}  // namespace penstock::remote
