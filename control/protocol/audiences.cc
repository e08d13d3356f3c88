// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/audiences.h"

#include <algorithm>

#include "control/protocol/each_position.h"

namespace penstock::protocol {

void Audiences::Change(size_t partition, const std::optional<IndexSet>& before,
                       const std::optional<IndexSet>& now) {
  const IndexSet its = JustPosition(partition);
  if (before) ForEach(*before, [&](size_t reader) { serving_[reader].Remove(its); });
  limited_.Remove(its);
  if (now) {
    limited_.Add(its);
    Extend(partition, *now);
  }
  while (!serving_.empty() && serving_.back().empty()) serving_.pop_back();
}

void Audiences::Extend(size_t partition, const IndexSet& added) {
  serving_.resize(std::max(serving_.size(), static_cast<size_t>(added.end())));
  ForEach(added, [&](size_t reader) { serving_[reader].Add(PositionOf(partition)); });
}

IndexSet Audiences::Of(std::optional<size_t> reader, size_t count) const {
  IndexSet partitions = IndexSet::Of(0, PositionOf(count));
  partitions.Remove(limited_);
  if (reader && *reader < serving_.size()) partitions.Add(serving_[*reader]);
  return partitions;
}

}  // namespace penstock::protocol
