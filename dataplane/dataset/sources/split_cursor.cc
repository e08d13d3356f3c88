// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/split_cursor.h"

#include "absl/strings/str_cat.h"
#include "penstock/status.h"

namespace penstock {

SplitCursor::SplitCursor(const BuildSite& site, int64_t count, int64_t splits)
    : site_(site), count_(count), splits_(splits) {}

absl::StatusOr<std::optional<Span64>> SplitCursor::Next() {
  SplitFeed* feed = site_.splits();
  if (feed == nullptr) {
    if (ordinal_ > 0) return std::nullopt;
    ++ordinal_;
    return Span64{0, count_};
  }
  ASSIGN_OR_RETURN(const std::optional<int64_t> split,
                   feed->Get(site_.provider(), site_.repetition(), ordinal_));
  if (!split.has_value()) return std::nullopt;
  if (*split < 0 || *split >= splits_) {
    return absl::DataLossError(absl::StrCat(site_.name(), ": was given split ", *split, " of ",
                                            splits_, "; the plan is of another dataset"));
  }
  ++ordinal_;
  return SplitOf(count_, splits_, *split);
}

}  // namespace penstock
