// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/kinds.h"

namespace penstock {

std::vector<NodeKind> TransformKinds() { return {}; }

}  // namespace penstock
