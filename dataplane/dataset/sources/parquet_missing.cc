// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/parquet.h"
#include "penstock/sources.h"

namespace penstock {

std::vector<NodeKind> ParquetKinds() {
  return {};
}

Dataset Dataset::Parquet(FileNames, const Spec&) {
  return Dataset(FailedNode(
      "Parquet", {},
      absl::UnimplementedError("this program was built without Arrow (docs/dependencies.md)")));
}

}  // namespace penstock
