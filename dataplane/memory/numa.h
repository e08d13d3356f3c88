// SPDX-License-Identifier: Apache-2.0
// The NUMA node of the memory that receives elements. Without a device it is the node of the thread
// that touches the memory first, as usual. With a device it is the device's node, because copies
// would otherwise cross the link between sockets.
// Source: mbind(2).
#pragma once

#include <cstddef>
#include <string>

#include "absl/types/span.h"

namespace penstock {

// Returns the node next to a device on the PCI bus ("0000:3b:00.0"), as in sysfs; -1 if it is not
// known, which is usual on machines with one node.
int NodeOfPci(const std::string& address);

// Declares that this process uses a device next to `node`. A second node removes the preference
// permanently, because memory then serves devices of both nodes. -1 (node not known) changes
// nothing. Any thread.
void UseMemoryNode(int node);
// Returns the node for new memory, or -1 for no preference.
int MemoryNode();

// Places the pages of `memory`, none of which has been touched yet, on MemoryNode(), or elsewhere
// once that node is full. Does nothing if the system has no NUMA or a container's profile forbids
// it. `memory` must begin on a page boundary.
void PreferMemoryNode(absl::Span<std::byte> memory);

}  // namespace penstock
