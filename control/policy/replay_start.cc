// SPDX-License-Identifier: Apache-2.0
#include "control/policy/replay_start.h"

#include <algorithm>

namespace penstock::control {
namespace {

// Returns the versions in the bookmark at `index`.
absl::Span<const PositionVersion> VersionsAt(const PartitionSplits& splits, Index index) {
  const auto marked = std::ranges::find(splits.marks, index, &MarkedBookmark::index);
  if (marked == splits.marks.end()) return {};
  return marked->versions;
}

// Returns whether the partition can be replayed without a bookmark. A restored one cannot: its
// index 0 may be in the middle of the dataset.
bool MayBeginAtStart(const IterationState& iteration, const PartitionSplits& splits) {
  return iteration.leads.empty() && iteration.passes_over.empty() && splits.retired.empty() &&
         std::ranges::all_of(splits.given,
                             [](const auto& given) { return given.second.first_ordinal == 0; });
}

}  // namespace

bool CanRead(absl::Span<const PositionVersions> readable,
             absl::Span<const PositionVersion> versions) {
  const auto is_read = [&](const std::string& operation, uint32_t version) {
    const auto its = std::ranges::find(readable, operation, &PositionVersions::operation);
    if (its == readable.end()) return version == 1;
    return its->lowest <= version && version <= its->highest;
  };
  return std::ranges::all_of(
      versions, [&](const PositionVersion& its) { return is_read(its.operation, its.version); });
}

std::optional<protocol::Bookmark> ReplayStart(const IterationState& iteration,
                                              PartitionId partition,
                                              const protocol::Bookmark& newest,
                                              absl::Span<const PositionVersions> readable) {
  const PartitionSplits& splits = iteration.splits[partition.value() - 1];
  if (CanRead(readable, VersionsAt(splits, newest.index))) return newest;
  // Readers that share windows may get elements after the newest bookmark again, but no others.
  if (iteration.record.commit_policy == protocol::CommitPolicy::kNever) return newest;
  const auto& bookmarks = iteration.record.partition(partition).bookmarks;
  for (auto earlier = bookmarks.rbegin(); earlier != bookmarks.rend(); ++earlier) {
    if (earlier->index < newest.index && CanRead(readable, VersionsAt(splits, earlier->index))) {
      return *earlier;
    }
  }
  if (MayBeginAtStart(iteration, splits)) return std::nullopt;
  return newest;
}

}  // namespace penstock::control
