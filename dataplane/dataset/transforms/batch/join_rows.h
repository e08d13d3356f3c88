// SPDX-License-Identifier: Apache-2.0
// Joins rows of several batches into one batch.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/transforms/batch/batch_rows.h"
#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "penstock/spec.h"

namespace penstock {

// Rows [from, to) of a batch.
struct RowRange {
  std::shared_ptr<BatchRows> rows;
  int64_t from, to;
};

// Returns the rows of all ranges as one batch of `spec`. InvalidArgument names a leaf whose rows
// have different shapes. REQUIRES: at least one row.
absl::StatusOr<Element> JoinRows(Pool& pool, absl::Span<const RowRange> ranges, const Spec& spec);

// Returns a batch without rows. Unknown dimensions are 0.
absl::StatusOr<Element> NoRows(Pool& pool, const Spec& spec);

// Calls JoinRows(), or NoRows() if there are no rows. If the only range is a whole batch, returns
// that batch.
absl::StatusOr<Element> BatchOf(Pool& pool, absl::Span<const RowRange> ranges, const Spec& spec);

}  // namespace penstock
