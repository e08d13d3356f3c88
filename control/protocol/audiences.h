// SPDX-License-Identifier: Apache-2.0
// Finds the partitions that may serve a reader, without a search through all partitions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "control/protocol/each_position.h"
#include "control/protocol/index_set.h"

namespace penstock::protocol {

// The audiences of an iteration's partitions (PartitionRecord::audience), by reader. Partitions and
// readers are named by their positions in the record.
class Audiences {
 public:
  // The partition's audience changes. None: all readers, also those that join later. Each partition
  // begins with none.
  void Change(size_t partition, const std::optional<IndexSet>& before,
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
  // The partition's audience, which is not none, gets further readers.
  void Extend(size_t partition, const IndexSet& added) {
    serving_.resize(std::max(serving_.size(), static_cast<size_t>(added.end())));
    ForEach(added, [&](size_t reader) { serving_[reader].Add(PositionOf(partition)); });
  }

  // Returns those of the first `count` partitions that may serve the reader; nullopt: that may
  // serve all readers. Takes time linear in the number of partitions that may serve this reader,
  // but not all readers.
  IndexSet Of(std::optional<size_t> reader, size_t count) const {
    IndexSet partitions = IndexSet::Of(0, PositionOf(count));
    partitions.Remove(limited_);
    if (reader && *reader < serving_.size()) partitions.Add(serving_[*reader]);
    return partitions;
  }

  friend bool operator==(const Audiences&, const Audiences&) = default;

 private:
  IndexSet limited_;               // the partitions that may serve some readers only
  std::vector<IndexSet> serving_;  // by reader: those of them that may serve it; the last is not
                                   // empty
};

}  // namespace penstock::protocol
