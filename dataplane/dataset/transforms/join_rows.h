// SPDX-License-Identifier: Apache-2.0
// Rows of several batches put together into one.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/transforms/batch_rows.h"
#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "penstock/spec.h"

namespace penstock {

// Rows [from, to) of a batch.
struct RowRange {
  std::shared_ptr<BatchRows> rows;
  int64_t from, to;
};

// The rows of all ranges as one batch of `spec`. InvalidArgument names a leaf
// whose rows have different shapes. REQUIRES: there is at least one row.
absl::StatusOr<Element> JoinRows(Pool& pool, absl::Span<const RowRange> ranges, const Spec& spec);

// A batch without rows; unknown dimensions are 0.
absl::StatusOr<Element> NoRows(Pool& pool, const Spec& spec);

// Either of these, or, where the range is a whole batch, that batch itself.
absl::StatusOr<Element> BatchOf(Pool& pool, absl::Span<const RowRange> ranges, const Spec& spec);

}  // namespace penstock
