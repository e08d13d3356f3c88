// SPDX-License-Identifier: Apache-2.0
// Dataset::Range and RangeOf: equally spaced int64 scalars.
#pragma once

#include "dataplane/dataset/graph/registry.h"

namespace penstock {

NodeKind RangeKind();
NodeKind RangeOfKind();  // inside a body: 0 … argument - 1

}  // namespace penstock
