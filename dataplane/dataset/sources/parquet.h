// SPDX-License-Identifier: Apache-2.0
// Parquet: rows of Parquet files, where Arrow was there to build it (parquet.cc);
// parquet_missing.cc stands in its place elsewhere.
#pragma once

#include <vector>

#include "dataplane/dataset/registry.h"

namespace penstock {

// None without Arrow.
std::vector<NodeKind> ParquetKinds();

}  // namespace penstock
