// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "dataplane/dataset/graph/registry.h"

namespace penstock {

// The node kinds that this folder defines.
std::vector<NodeKind> SourceKinds();

}  // namespace penstock
