// SPDX-License-Identifier: Apache-2.0
// What makes two nodes equal, as a number.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "dataplane/dataset/attr.h"
#include "dataplane/dataset/graph.h"

namespace penstock {

// Of a node and all below it: operation, version, attributes and inputs. Equal
// on every machine and release; constants enter by their values.
uint64_t FingerprintOf(std::string_view op, int version, const Attrs& attrs,
                       const std::vector<NodePtr>& inputs);

}  // namespace penstock
