// SPDX-License-Identifier: Apache-2.0
// What makes two nodes equal, as a number.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "dataplane/dataset/attr.h"
#include "dataplane/dataset/graph.h"
#include "dataplane/dataset/registry.h"

namespace penstock {

// Of a node and all below it: operation, version, attributes and inputs. Equal
// on every machine and release; constants enter by their values.
uint64_t FingerprintOf(std::string_view op, int version, const Attrs& attrs,
                       const std::vector<NodePtr>& inputs);

// The attributes that tell one node from another. REQUIRES: checked.
Attrs Identifying(const NodeKind& kind, Attrs attrs);

// Of a node by itself, whatever its inputs are.
uint64_t OwnFingerprintOf(const Dataset::Node& node);

}  // namespace penstock
