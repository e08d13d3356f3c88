// SPDX-License-Identifier: Apache-2.0
// The iterator of Batch, RaggedBatch and PaddedBatch.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/transforms/batch/padding.h"

namespace penstock {

// Makes batches of the site's input as the site's spec describes them (see StackRows). Uses the
// attributes "batch_size" and "drop_remainder". Rows of known size, including padding, are written
// directly into the batch.
absl::StatusOr<std::unique_ptr<NodeIterator>> BuildBatchIterator(const BuildSite& site,
                                                                 std::optional<RowPadding> padding);

}  // namespace penstock
