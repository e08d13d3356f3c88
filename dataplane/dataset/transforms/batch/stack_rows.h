// SPDX-License-Identifier: Apache-2.0
// Stacks elements into one: each leaf gets one more dimension in front.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/transforms/batch/padding.h"
#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "penstock/spec.h"

namespace penstock {

// Returns a batch of `rows` as `batch` describes it. A dense leaf either becomes ragged or stays
// dense, which requires equal shapes or `padding`. Ragged leaves get one more level, sparse leaves
// one more index. InvalidArgument names the leaf and the two shapes that do not fit together.
// REQUIRES: `rows` is not empty.
absl::StatusOr<Element> StackRows(Pool& pool, absl::Span<const Element> rows, const Spec& batch,
                                  const RowPadding* padding = nullptr);

}  // namespace penstock
