// SPDX-License-Identifier: Apache-2.0
// Batch right behind a Map whose results, padded where it is PaddedBatch, have a
// known size: they are written straight into the rows of the batch's block, several
// rows at a time, at least one batch ahead.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/node_iterator.h"

namespace penstock {

// Whether `node`, a Batch, RaggedBatch or PaddedBatch, is built this way. Depends on the definition
// alone, as positions must mean the same on every machine.
bool IsMapBatch(const Dataset::Node& node);

// REQUIRES: IsMapBatch(site.node()).
absl::StatusOr<std::unique_ptr<NodeIterator>> BuildMapBatch(const BuildSite& site);

}  // namespace penstock
