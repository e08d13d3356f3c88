// SPDX-License-Identifier: Apache-2.0
// Finds the partitions that may serve a reader, without a search through all partitions.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "control/protocol/index_set.h"

namespace penstock::protocol {

// The audiences of an iteration's partitions (PartitionRecord::audience), by reader. Partitions and
// readers are named by their positions in the record.
class Audiences {
 public:
  // The partition's audience changes. None: all readers, also those that join later. Each partition
  // begins with none.
  void Change(size_t partition, const std::optional<IndexSet>& before,
              const std::optional<IndexSet>& now);
  // The partition's audience, which is not none, gets further readers.
  void Extend(size_t partition, const IndexSet& added);

  // Returns those of the first `count` partitions that may serve the reader; nullopt: that may
  // serve all readers. Takes time linear in the number of partitions that may serve this reader,
  // but not all readers.
  IndexSet Of(std::optional<size_t> reader, size_t count) const;

  friend bool operator==(const Audiences&, const Audiences&) = default;

 private:
  IndexSet limited_;               // the partitions that may serve some readers only
  std::vector<IndexSet> serving_;  // by reader: those of them that may serve it; the last is not
                                   // empty
};

}  // namespace penstock::protocol
