// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "dataplane/dataset/registry.h"

namespace penstock {

// The kinds of nodes this folder defines.
std::vector<NodeKind> SourceKinds();

}  // namespace penstock
