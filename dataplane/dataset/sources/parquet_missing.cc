// SPDX-License-Identifier: Apache-2.0
// Built in place of parquet.cc if Arrow is not available.
#include "dataplane/dataset/sources/kinds.h"
#include "penstock/sources.h"

namespace penstock {

std::vector<NodeKind> ParquetKinds() {
  return {};
}

Dataset Dataset::Parquet(FileNames, const Spec&) {
  return DatasetOf(FailedNode(
      "Parquet", {},
      absl::UnimplementedError("this program was built without Arrow (docs/dependencies.md)")));
}

}  // namespace penstock
