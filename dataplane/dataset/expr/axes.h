// SPDX-License-Identifier: Apache-2.0
// Axes as users name them: negative ones count from the end.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {

// Returns the place of the axis, 0 ≤ place < rank. InvalidArgument names the axis and the rank.
absl::StatusOr<int> PlaceOfAxis(int64_t axis, int rank);

// Returns, for each of the `rank` axes, whether `axes` names it. InvalidArgument for an axis that
// is out of range or named twice.
absl::StatusOr<std::vector<bool>> MarkAxes(absl::Span<const int64_t> axes, int rank);

}  // namespace penstock
