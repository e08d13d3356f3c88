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
// that nothing but what was delivered has to be remembered.
class OrderQueue {
 public:
  OrderQueue() = default;
  // `passed`: by partition, rows of this consumer that are in a history already.
  OrderQueue(const Positions& positions, int64_t consumer, std::vector<IndexSet> passed);

  // `partition` has so many elements. The first call counts.
  void SetEnd(PartitionId partition, Index elements);

  const Positions& positions() const { return positions_; }
  size_t partitions() const { return cursors_.size(); }
  // Whether that element is this consumer's, and still to be delivered.
  bool Expects(PartitionId partition, Index index) const;
  // The row that is next; nullopt: nothing is left. Waits for the ends of partitions: where one has
  // come to its own and has not been said to, that is what it names.
  std::optional<PartitionRow> Next() const;
  // Next() is delivered. REQUIRES: there is one.
  void Pop();
  // The index that is to be delivered next of `partition`; nullopt: none is this consumer's.
  std::optional<Index> NextOf(PartitionId partition) const;

 private:
  struct PartitionCursor {
    std::optional<Index> offset;  // positions_.OffsetOf()
    int64_t row = 0;              // the next
    std::optional<Index> end;
    IndexSet passed;
  };
  const PartitionCursor& CursorOf(PartitionId partition) const {
    return cursors_[partition.value() - 1];
  }
  Index IndexOf(const PartitionCursor& cursor) const {
    return cursor.row * stride_ + *cursor.offset;
  }

  Positions positions_;
  int64_t stride_ = 1;
  std::vector<PartitionCursor> cursors_;  // [0] is partition 1
};

}  // namespace penstock::protocol
