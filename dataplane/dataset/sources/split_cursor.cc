// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/split_cursor.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

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
    return absl::DataLossError(absl::StrCat(site_.name(), ": got split ", *split, " of ", splits_,
                                            "; the plan belongs to a different dataset"));
  }
  ++ordinal_;
  return SplitOf(count_, splits_, *split);
}

void SplitCursor::Save(StateWriter& writer, Span64 left) const {
  writer.WriteInt(ordinal_);
  writer.WriteInt(left.end - left.begin);
  NoteNeeded(writer, left.begin < left.end);
}

void SplitCursor::NoteNeeded(StateWriter& writer, bool some_left) const {
  if (site_.splits() == nullptr) return;
  writer.NeedsSplits(site_.provider(), site_.repetition(), ordinal_ - (some_left ? 1 : 0));
}

absl::StatusOr<Span64> SplitCursor::Restore(
    StateReader& reader, absl::FunctionRef<absl::StatusOr<std::optional<Span64>>()> next) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  ASSIGN_OR_RETURN(const int64_t ordinal, reader.ReadIntIn(0, kMax, "the number of splits"));
  ASSIGN_OR_RETURN(const int64_t left, reader.ReadIntIn(0, kMax, "the rest of a split"));
  Seek(ordinal);
  if (left == 0) return Span64{0, 0};
  const absl::Status outside = absl::DataLossError("a saved position is outside its split");
  if (ordinal == 0) return outside;
  Seek(ordinal - 1);
  ASSIGN_OR_RETURN(const std::optional<Span64> span, next());
  if (!span.has_value() || left > span->end - span->begin) return outside;
  return Span64{span->end - left, span->end};
}

}  // namespace penstock
