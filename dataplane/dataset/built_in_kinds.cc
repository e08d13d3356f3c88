// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <utility>
#include <vector>

#include "dataplane/dataset/graph/registry.h"
#include "dataplane/dataset/sources/kinds.h"
#include "dataplane/dataset/transforms/kinds.h"

namespace penstock {

std::vector<NodeKind> BuiltInKinds() {
  std::vector<NodeKind> kinds = SourceKinds();
  std::vector<NodeKind> transforms = TransformKinds();
  kinds.insert(kinds.end(), std::make_move_iterator(transforms.begin()),
               std::make_move_iterator(transforms.end()));
  return kinds;
}

}  // namespace penstock
