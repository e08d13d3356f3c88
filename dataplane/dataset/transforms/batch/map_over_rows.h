// SPDX-License-Identifier: Apache-2.0
// A Batch directly after a Map whose function works over rows (expr/over_rows.h). Inputs are placed
// side by side. One call of the function processes many inputs and writes its results into the
// batch's block.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/node_iterator.h"

namespace penstock {

// Returns whether the Batch `node` is built this way. False if the dataset asks for several calls
// at a time, because further calls would have nothing to do. REQUIRES: IsMapBatch(node).
bool GoesOverRows(const Dataset::Node& node);

// REQUIRES: GoesOverRows(site.node()).
absl::StatusOr<std::unique_ptr<NodeIterator>> BuildMapOverRows(const BuildSite& site);

}  // namespace penstock
