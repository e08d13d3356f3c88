// SPDX-License-Identifier: Apache-2.0
// Elements at hand made one: each leaf gets one more dimension in front.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/transforms/padding.h"
#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "penstock/spec.h"

namespace penstock {

// A batch of `rows` as `batch` describes it: dense leaves stay dense where it
// says so, which takes equal shapes or `padding`, or become ragged; ragged ones
// get one more level; sparse ones one more index. InvalidArgument names the leaf
// and both shapes where they do not fit. REQUIRES: rows is not empty.
absl::StatusOr<Element> StackRows(Pool& pool, absl::Span<const Element> rows, const Spec& batch,
                                  const RowPadding* padding = nullptr);

}  // namespace penstock
