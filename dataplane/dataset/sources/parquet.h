// SPDX-License-Identifier: Apache-2.0
// Parquet: rows of Parquet files. parquet.cc is built if Arrow is available; otherwise
// parquet_missing.cc is built in its place.
#pragma once

#include <vector>

#include "dataplane/dataset/graph/registry.h"

namespace penstock {

// Empty without Arrow.
std::vector<NodeKind> ParquetKinds();

}  // namespace penstock
