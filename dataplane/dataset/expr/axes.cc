// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/expr/axes.h"

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock {

absl::StatusOr<int> PlaceOfAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis, " is out of range for rank ", rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::StatusOr<std::vector<bool>> MarkAxes(absl::Span<const int64_t> axes, int rank) {
  std::vector<bool> marked(rank, false);
  for (int64_t axis : axes) {
    ASSIGN_OR_RETURN(const int place, PlaceOfAxis(axis, rank));
    if (marked[place])
      return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " is named twice"));
    marked[place] = true;
  }
  return marked;
}

}  // namespace penstock
