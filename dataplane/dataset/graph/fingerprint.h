// SPDX-License-Identifier: Apache-2.0
// Numbers that are equal for equal nodes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "dataplane/dataset/expr/attr.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/registry.h"

namespace penstock {

// Returns the fingerprint of a node and everything below it: operation, version, attributes and
// inputs. It is the same on every machine and in every release. The values of constants are part of
// it.
uint64_t FingerprintOf(std::string_view op, int version, const Attrs& attrs,
                       const std::vector<NodePtr>& inputs);

// Returns the attributes that distinguish one node from another. REQUIRES: they were checked.
Attrs Identifying(const NodeKind& kind, Attrs attrs);

// Returns the fingerprint of a node alone, without its inputs.
uint64_t OwnFingerprintOf(const Dataset::Node& node);

}  // namespace penstock
