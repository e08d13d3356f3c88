// SPDX-License-Identifier: Apache-2.0
// What Batch, RaggedBatch and PaddedBatch read by.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/transforms/padding.h"

namespace penstock {

// Batches of the site's input as its spec describes them (StackRows), by the
// attributes "batch_size" and "drop_remainder". Rows whose size is known, padding
// included, are written where they will stay.
absl::StatusOr<std::unique_ptr<NodeIterator>> BuildBatchIterator(const BuildSite& site,
                                                                 std::optional<RowPadding> padding);

}  // namespace penstock
