// SPDX-License-Identifier: Apache-2.0
// A consumer's side of order kDeterministic (positions.h): which of its elements is the next. A
// value; one thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "control/protocol/positions.h"
#include "control/protocol/rounds.h"

namespace penstock::protocol {

// The next element is always that with the lowest position of the consumer's that are left, so
// that nothing but what was taken has to be remembered.
class OrderQueue {
 public:
  OrderQueue() = default;
  // `passed`: by partition, turns of this consumer that are in a history already.
  OrderQueue(const Positions& positions, int64_t consumer, std::vector<IndexSet> passed);

  // `partition` has so many elements. The first call counts.
  void SetEnd(PartitionId partition, Index elements);

  const Positions& positions() const { return positions_; }
  size_t partitions() const { return lanes_.size(); }
  // Whether that element is this consumer's, and still to be taken.
  bool Expects(PartitionId partition, Index index) const;
  // Whose turn it is; nullopt: nothing is left. Waits for the ends of partitions: where one has
  // come to its own and has not been said to, that is what it names.
  std::optional<TurnOf> Next() const;
  // Next() is taken. REQUIRES: there is one.
  void Take();
  // The index that is to be taken next of `partition`; nullopt: none is this consumer's.
  std::optional<Index> NextOf(PartitionId partition) const;

 private:
  struct Lane {
    std::optional<Index> offset;  // positions_.OffsetOf()
    int64_t turn = 0;             // the next
    std::optional<Index> end;
    IndexSet passed;
  };
  const Lane& LaneOf(PartitionId partition) const { return lanes_[partition.value() - 1]; }
  Index IndexOf(const Lane& lane) const { return lane.turn * stride_ + *lane.offset; }

  Positions positions_;
  int64_t stride_ = 1;
  std::vector<Lane> lanes_;  // [0] is partition 1
};

}  // namespace penstock::protocol
