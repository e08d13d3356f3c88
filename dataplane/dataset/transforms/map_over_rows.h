// SPDX-License-Identifier: Apache-2.0
// Batch right behind a Map whose function goes over rows (expr/over_rows.h): inputs are
// put side by side, and the function is called once for many of them, with its results
// in the batch's block.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/node_iterator.h"

namespace penstock {

// Whether the Batch `node`, for which IsMapBatch() holds, is built this way. Not where
// the dataset asks for several calls at a time: they would have nothing to do.
bool GoesOverRows(const Dataset::Node& node);

// REQUIRES: GoesOverRows(site.node()).
absl::StatusOr<std::unique_ptr<NodeIterator>> BuildMapOverRows(const BuildSite& site);

}  // namespace penstock
