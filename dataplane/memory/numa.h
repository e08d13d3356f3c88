// SPDX-License-Identifier: Apache-2.0
// On which NUMA node the memory lies that receives elements. Without a device it is that of the
// thread that touches it first, as always; with one it is the device's, whose copies would cross
// the link between sockets otherwise.
// Source: mbind(2).
#pragma once

#include <cstddef>
#include <string>

#include "absl/types/span.h"

namespace penstock {

// The node next to a device on the PCI bus ("0000:3b:00.0"), as sysfs has it; -1 if it is not
// known, which is usual where there is but one.
int NodeOfPci(const std::string& address);

// This process uses a device next to that node. A second node undoes it for good: memory is
// then for devices of both. -1, where a node is not known, changes nothing. Any thread.
void UseMemoryNode(int node);
// Where new memory shall lie: a node, or -1 for no preference.
int MemoryNode();

// Has pages of `memory`, of which none was touched yet, made on MemoryNode(), or elsewhere once
// that is full. Nothing where the system has no NUMA or a container's profile forbids it. `memory`
// begins at a page.
void PreferMemoryNode(absl::Span<std::byte> memory);

}  // namespace penstock
