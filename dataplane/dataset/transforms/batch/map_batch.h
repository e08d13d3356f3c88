// SPDX-License-Identifier: Apache-2.0
// A Batch directly after a Map whose results have a known size, including padding for PaddedBatch.
// The results are written directly into the rows of the batch's block, several rows at a time.
// Unless calls run one at a time, at least one batch is computed ahead.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/node_iterator.h"

namespace penstock {

// Returns whether `node`, a Batch, RaggedBatch or PaddedBatch, is built this way. The answer
// depends only on the definition, because a position must mean the same on every machine.
bool IsMapBatch(const Dataset::Node& node);

// REQUIRES: IsMapBatch(site.node()).
absl::StatusOr<std::unique_ptr<NodeIterator>> BuildMapBatch(const BuildSite& site);

}  // namespace penstock
