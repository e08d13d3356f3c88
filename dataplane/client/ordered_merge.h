// SPDX-License-Identifier: Apache-2.0
// One element of each partition in turn, without those that have ended: the order
// that does not depend on who sends when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "dataplane/client/landed.h"
#include "penstock/ids.h"

namespace penstock::client {

// The next element is always that with the lowest (index, partition) of those that
// are left, so that nothing but what was taken has to be remembered. Not thread-safe.
class OrderedMerge {
 public:
  // Its partitions, each with the first index that is to be returned. The first call counts.
  void Open(const std::vector<Index>& starts);
  // `partition` has so many elements.
  void SetEnd(PartitionId partition, Index elements);
  // Nothing will come that has not landed.
  void SetAllEnded();

  // Whether that element is still to be returned.
  bool Expects(PartitionId partition, Index index) const {
    return partition && partition.value() <= lanes_.size() && index >= next(partition);
  }
  // Kept until its turn. REQUIRES: it is expected, and not here yet.
  void Push(Landed landed);
  // Whether the next element is here.
  bool ready() const { return Next() != nullptr; }
  // REQUIRES: ready().
  Landed Pop();

  size_t partitions() const { return lanes_.size(); }
  // The index that `partition` is to return next.
  Index next(PartitionId partition) const { return lanes_[partition.value() - 1].next; }

 private:
  struct Lane {
    Index next = 0;
    std::optional<Index> end;
    std::map<Index, Landed> landed;
  };
  // The lane whose turn it is, if its element is here.
  const Lane* Next() const;

  std::vector<Lane> lanes_;  // [0] is partition 1
  bool all_ended_ = false;
};

}  // namespace penstock::client
