// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/kinds.h"

#include "dataplane/dataset/sources/range.h"

namespace penstock {

std::vector<NodeKind> SourceKinds() {
  return {
      RangeKind(),
      RangeOfKind(),
  };
}

}  // namespace penstock
