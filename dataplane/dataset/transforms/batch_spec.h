// SPDX-License-Identifier: Apache-2.0
// What elements put together look like, and how many there are.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "penstock/spec.h"

namespace penstock {

// `rows` elements of `row` (kUnknownDim: it varies) put together: each leaf
// gets one more dimension in front, ragged leaves one more level. InvalidArgument
// names the leaf for which that is too many.
absl::StatusOr<Spec> StackedSpec(const Spec& row, int64_t rows);

// The same where dense leaves become ragged up to their last unknown dimension.
absl::StatusOr<Spec> RaggedSpec(const Spec& row, int64_t rows);

// How many batches of `size` so many elements make.
Cardinality BatchCount(Cardinality elements, int64_t size, bool drop_remainder);
// How many rows so many elements of `batch` have together.
Cardinality UnbatchedCount(const Spec& batch, Cardinality elements);

}  // namespace penstock
